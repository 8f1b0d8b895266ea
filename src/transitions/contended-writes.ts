/**
 * Writes of unrelated callers that happen at the same time. The invariant: no caller waits for another caller's row. An item whose row or key is
 * locked by another transaction waits separately, and so does every later item that needs the same. One item per such row is tried, all on
 * one connection, with growing pauses, until the row is free or the item has waited long enough.
 */

import type { Runner, Store } from '../postgres/store.ts'
import { Late } from '../service/group.ts'
import { pause } from '../service/service.ts'
import { runBatch, type Told } from './batch.ts'

/** What is written, and how. */
export interface ApartOptions<Item, Answer> {
  store: Store
  /** Writes items, all or none, and returns one answer per item, in order. */
  run: (runner: Runner, items: Item[]) => Promise<Answer[]>
  /** What an item may have to wait for: items that need the same row have the same name. */
  nameOf: (item: Item) => string
  /** The answer for an item that the database refuses, in a batch of that size. May throw. */
  refused: (error: unknown, count: number) => Answer
}

interface Kept<Item, Answer> {
  readonly item: Item
  readonly name: string
  readonly untilMs: number
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
  error: unknown
}

/** How long an item waits at most. */
const patienceMs = 15_000
const longestPauseMs = 1_000
/** How long one try may wait for all rows together. */
const tryMs = 1_000

/** Writes items of unrelated callers, and keeps those that have to wait. */
export class Apart<Item, Answer> {
  readonly #options: ApartOptions<Item, Answer>
  readonly #kept = new Map<string, Kept<Item, Answer>[]>()
  #isTrying = false

  constructor(options: ApartOptions<Item, Answer>) {
    this.#options = options
  }

  /** Writes items that came at the same time, and returns their answers in order. */
  async write(items: Item[]): Promise<(Answer | Late<Answer>)[]> {
    const { nameOf, refused } = this.#options
    const free = items.filter((item) => !this.#kept.has(nameOf(item)))
    // while some rows are locked, others may be as well, and no item should have to wait to find out
    const told = await this.#run(free, { isWary: this.#kept.size > 0 })
    const byItem = new Map(free.map((item, index) => [item, told[index] as Told<Answer>]))
    return items.map((item) => {
      const one = byItem.get(item)
      if (!one || one.is === 'held') return new Late(this.#keep(item, one?.error))
      return one.is === 'done' ? one.answer : refused(one.error, items.length)
    })
  }

  #run(items: Item[], how: { isWary: boolean; patienceMs?: number }): Promise<Told<Answer>[]> {
    return runBatch(this.#options.store, { items, run: this.#options.run, ...how })
  }

  #keep(item: Item, error: unknown): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const name = this.#options.nameOf(item)
      const same = this.#kept.get(name) ?? []
      const untilMs = performance.now() + patienceMs
      same.push({ item, name, untilMs, resolve, reject, error: error ?? same[0]?.error })
      this.#kept.set(name, same)
      if (!this.#isTrying) void this.#tryAll()
    })
  }

  async #tryAll(): Promise<void> {
    this.#isTrying = true
    for (let tries = 1; this.#kept.size > 0; tries++) {
      await pause(Math.min(longestPauseMs, 50 * 2 ** tries))
      await this.#tryOnce().catch((error) => this.#giveUpAll(error))
    }
    this.#isTrying = false
  }

  /** Tries the first item of each name; once that one was answered, the others have nothing left to wait for. */
  async #tryOnce(): Promise<void> {
    const first = [...this.#kept.values()].map(([one]) => one as Kept<Item, Answer>)
    const answered = new Set(await this.#tryThese(first, true))
    const rest = [...answered].flatMap((name) => this.#kept.get(name) ?? [])
    await this.#tryThese(rest, false)
    const nowMs = performance.now()
    for (const one of [...this.#kept.values()].flat())
      if (nowMs >= one.untilMs) this.#end(one, () => one.reject(one.error))
  }

  async #tryThese(these: Kept<Item, Answer>[], isWary: boolean): Promise<string[]> {
    const items = these.map(({ item }) => item)
    const told = await this.#run(items, { isWary, patienceMs: tryMs })
    for (const [index, one] of these.entries()) this.#tell(one, told[index] as Told<Answer>)
    return these.filter((_, index) => told[index]?.is !== 'held').map(({ name }) => name)
  }

  #tell(one: Kept<Item, Answer>, told: Told<Answer>): void {
    if (told.is === 'done') this.#end(one, () => one.resolve(told.answer))
    else if (told.is === 'refused') this.#end(one, () => one.reject(told.error))
    else {
      one.error = told.error
      // items that there was no time for go first next time
      if (told.isAlone) this.#moveBack(one.name)
    }
  }

  #moveBack(name: string): void {
    const same = this.#kept.get(name) ?? []
    this.#kept.delete(name)
    this.#kept.set(name, same)
  }

  #end(one: Kept<Item, Answer>, answer: () => void): void {
    const others = (this.#kept.get(one.name) ?? []).filter((other) => other !== one)
    if (others.length > 0) this.#kept.set(one.name, others)
    else this.#kept.delete(one.name)
    answer()
  }

  #giveUpAll(error: unknown): void {
    for (const one of [...this.#kept.values()].flat()) this.#end(one, () => one.reject(error))
  }
}
