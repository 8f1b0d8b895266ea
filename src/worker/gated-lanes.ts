import { gatedLanes } from '../limits/limits.sql.ts'
import type { Runner } from '../postgres/store.ts'
import { kindKeyOf, type Lane } from './lanes.ts'

/** A kind in its queue: what passes through gates or does not. */
export type GatedLane = Pick<Lane, 'queue' | 'kind' | 'stageCount'>

/** What the last claim through gates said: where hints go on, whether gates are left, and when one opens by itself. */
export interface Gates {
  after: string
  isMore: boolean
  dueMs: number
}

/** What is known before the first claim, and where there are no gates. */
export const noGates: Gates = { after: '', isMore: false, dueMs: Number.POSITIVE_INFINITY }

/** What a claim said in its last row; it has none if its session has ended. */
export function gatesOf(told: { kind: string; lease_size: number; due_us: number | null } | undefined): Gates {
  if (!told) return noGates
  return {
    after: told.kind,
    isMore: told.lease_size === 1,
    dueMs: told.due_us === null ? Number.POSITIVE_INFINITY : told.due_us / 1000,
  }
}

/** How often a worker asks which of its kinds have limits. Until it knows, their jobs wait. */
const everyMs = 1_000

/** Knows which kinds of a worker pass through gates. Few do, so nothing is asked of the others. */
export class GatedLanes {
  readonly #all: GatedLane[]
  #gated: GatedLane[] = []
  #askedAtMs = Number.NEGATIVE_INFINITY
  #turn = 0

  constructor(lanes: readonly Lane[]) {
    const first = new Map(lanes.map((lane) => [kindKeyOf(lane), lane]))
    this.#all = [...first.values()].map(({ queue, kind, stageCount }) => ({ queue, kind, stageCount }))
  }

  /** Asks which kinds pass through gates, unless it has just asked. Resolves with whether any does. */
  async refresh(store: Runner): Promise<boolean> {
    if (performance.now() - this.#askedAtMs >= everyMs) await this.#ask(store)
    return this.isAny
  }

  /** The kinds that pass through gates, as far as is known. */
  get known(): GatedLane[] {
    return this.#gated
  }

  /** The same, starting with another one each time. */
  next(): GatedLane[] {
    const shift = this.#turn++ % Math.max(1, this.#gated.length)
    return [...this.#gated.slice(shift), ...this.#gated.slice(0, shift)]
  }

  /** Whether any kind does, as far as is known. */
  get isAny(): boolean {
    return this.#gated.length > 0
  }

  async #ask(store: Runner): Promise<void> {
    const rows = await store.run(gatedLanes, {
      queues: this.#all.map(({ queue }) => queue),
      kinds: this.#all.map(({ kind }) => kind),
    })
    this.#gated = rows.map(({ number }) => this.#all[number - 1] as GatedLane)
    this.#askedAtMs = performance.now()
  }
}
