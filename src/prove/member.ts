import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { pause } from '../service/service.ts'
import type { Effect } from './kinds.ts'
import type { Answer, News, Order } from './orders.ts'
import type { Handling } from './reading.ts'

/** A process of a proof, seen from the prover. */
export interface Member {
  readonly pid: number
  /** Never rejects: a process that ends before it answers is an answer too. */
  ask(order: Order, withinMs?: number): Promise<Answer>
  kill(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void
  readonly ready: Promise<unknown>
  readonly exited: Promise<{ code: number | null; signal: string | null }>
  readonly isGone: boolean
  /** Who hears of its handlers. */
  onEffect: (effect: Effect) => void
  /** Who hears of executions that its owner marked failed. */
  onMark: (execution: string) => void
  /** Who hears of its handlers of events. */
  onHandling: (handling: Handling) => void
  /** Who hears of the events that it posts. */
  onPosted: (event: string) => void
  /** The end of what it wrote to standard error. */
  words(): string
}

const wordsMost = 4_000
const askMs = 25_000

/** Starts a process of a proof. It waits for orders. */
export function spawnMember(): Member {
  const child = fork(fileURLToPath(new URL('./child.js', import.meta.url)), {
    env: environment(),
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const asked = new Map<number, (answer: Answer) => void>()
  let words = ''
  let lastId = 0
  let isGone = false
  const exited = once(child, 'exit').then(([code, signal]) => {
    isGone = true
    for (const answer of asked.values()) answer(gone(`the process ended (${signal ?? `code ${code}`})`))
    return { code, signal }
  })
  child.stderr?.on('data', (chunk) => {
    words = (words + chunk).slice(-wordsMost)
  })
  child.on('error', () => {}) // a message to a process that has just ended; its exit tells
  const ready = Promise.race([once(child, 'message'), exited])
  child.on('message', (news: News) => {
    if ('effect' in news) member.onEffect(news.effect)
    if ('marked' in news) member.onMark(news.marked)
    if ('handling' in news) member.onHandling(news.handling)
    if ('posted' in news) member.onPosted(news.posted)
    if ('answer' in news) asked.get(news.id)?.(news.answer)
  })

  function ask(order: Order, withinMs = askMs): Promise<Answer> {
    if (isGone) return Promise.resolve(gone('the process has ended'))
    lastId += 1
    const id = lastId
    const over = new AbortController()
    const answered = new Promise<Answer>((resolve) => asked.set(id, resolve))
    const late = pause(withinMs, over.signal).then(
      (): Answer => ({
        isDone: false,
        code: 'unexpected',
        message: `Waited ${withinMs} ms in vain until the process had answered to ${order.do}.`,
        isWire: false,
      }),
    )
    child.send({ id, order }, () => {})
    return Promise.race([answered, late]).finally(() => {
      over.abort()
      asked.delete(id)
    })
  }

  const member: Member = {
    pid: child.pid as number,
    ask,
    ready,
    exited,
    kill: (signal) => void (isGone || child.kill(signal)),
    get isGone() {
      return isGone
    },
    onEffect: () => {},
    onMark: () => {},
    onHandling: () => {},
    onPosted: () => {},
    words: () => words.trim(),
  }
  return member
}

function gone(message: string): Answer {
  return { isDone: false, code: 'not_running', message, isWire: true }
}

/** The cells have settings of their own; those of whoever runs the proof must not leak in. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HOLDFAST_')))
}

/** Processes that are started ahead, because starting one takes longer than most recoveries. */
export interface Pool {
  take(): Promise<Member>
  /** Takes back a process that was stopped in an orderly way and can be used again. */
  giveBack(member: Member): void
  close(): Promise<void>
}

/** Makes a pool that keeps so many processes ready. */
export function makePool(spare: number): Pool {
  const idle: Member[] = []
  const all = new Set<Member>()
  let isClosed = false

  function refill(): void {
    while (!isClosed && idle.length < spare) idle.push(spawn())
  }

  function spawn(): Member {
    const member = spawnMember()
    all.add(member)
    void member.exited.then(() => all.delete(member))
    return member
  }

  // none of them may outlive the prover, not even one that is frozen
  const killAll = () => {
    for (const member of all) member.kill('SIGKILL')
  }
  process.once('exit', killAll)
  refill()
  return {
    async take() {
      const member = idle.shift() ?? spawn()
      refill()
      await member.ready
      return member.isGone ? this.take() : member
    },
    giveBack(member) {
      member.onEffect = () => {}
      member.onMark = () => {}
      member.onHandling = () => {}
      member.onPosted = () => {}
      if (idle.length < 2 * spare && !member.isGone) idle.push(member)
      else member.kill('SIGKILL')
    },
    async close() {
      isClosed = true
      process.off('exit', killAll)
      killAll()
      await Promise.all([...all].map((member) => member.exited))
    },
  }
}
