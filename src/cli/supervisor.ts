/**
 * The supervisor: keeps a number of worker processes alive.
 *
 * Work is done in processes of its own, so that a handler that crashes, leaks or blocks takes down one process and not
 * the one that watches. A process that ends unasked is followed by another one, at once at first and ever later if they
 * keep ending. They in turn watch the channel to us: if we die, they end too.
 */
import { pause, type Service, within } from '../service/service.ts'
import type { Pulse } from '../service/vitals.ts'
import { type Child, type ChildOptions, startChild } from './child.ts'

/** What happens to the worker processes, for whoever tells people. */
export interface SupervisorNews {
  started(pid: number): void
  ended(pid: number, how: string, againInMs: number): void
  /** Its event loop has not turned for longer than any of its handlers may run, so it is ended. */
  stalled(pid: number, silentMs: number): void
}

/** What a supervisor needs. */
export interface SupervisorOptions extends ChildOptions {
  processes: number
  /** How long a process may take to end once it was asked to. */
  patienceMs: number
  /** How long the event loop of a process may not turn before it counts as stalled. */
  livenessMs: number
  /** Called as soon as a process is gone, however it went: the place to take back the jobs of its session. */
  onChildExit?: ((pid: number, how: string) => Promise<void>) | undefined
  onTrouble: (error: unknown) => void
  news: SupervisorNews
}

/** Worker processes under watch. `start` resolves when all of them work and rejects if one can't. */
export interface Supervisor extends Service {
  pids(): number[]
  /** What has to turn in the processes. */
  pulses(): Pulse[]
  /** Whether every process that there should be holds its session. */
  areHeld(): boolean
  /** Ends all processes without asking. */
  kill(): void
}

const firstWaitMs = 200
const longestWaitMs = 10_000
const healthyAfterMs = 30_000

/** How long to wait before a process is started again that has ended so often in a row. */
export function restartDelayMs(crashes: number): number {
  return Math.min(longestWaitMs, firstWaitMs * 2 ** Math.max(0, crashes - 1))
}

/** Makes a supervisor. */
export function makeSupervisor(options: SupervisorOptions): Supervisor {
  const children = new Set<Child>()
  const over = new AbortController()
  let keeping: Promise<void>[] = []
  let stopping: Promise<void> | undefined
  let looking: NodeJS.Timeout | undefined

  function begin(): Child {
    const child = startChild(options)
    children.add(child)
    return child
  }

  async function farewell(child: Child): Promise<string> {
    const how = await child.ended
    children.delete(child)
    await options.onChildExit?.(child.pid, how).catch(options.onTrouble)
    return how
  }

  /** Looks after one process and its successors. */
  async function keep(first: Child): Promise<void> {
    let child = first
    let crashes = 0
    for (;;) {
      const startedAtMs = performance.now()
      const how = await farewell(child)
      if (over.signal.aborted) return
      crashes = performance.now() - startedAtMs > healthyAfterMs ? 1 : crashes + 1
      const waitMs = restartDelayMs(crashes)
      options.news.ended(child.pid, how, waitMs)
      await pause(waitMs, over.signal)
      if (over.signal.aborted) return
      child = begin()
      announce(child)
    }
  }

  function announce(child: Child): void {
    child.ready.then(() => options.news.started(child.pid)).catch(options.onTrouble)
  }

  async function start(): Promise<void> {
    if (keeping.length > 0 || over.signal.aborted) return
    const first = Array.from({ length: options.processes }, begin)
    const ready = Promise.all(first.map((child) => child.ready))
    await ready.catch(async (error) => {
      await stopAll(first)
      throw error
    })
    keeping = first.map(keep)
    looking = setInterval(endStalled, Math.min(1_000, options.livenessMs / 4))
    for (const child of first) options.news.started(child.pid)
  }

  /**
   * A process that is stopped, or whose handler blocks it for ever, keeps its lease by its heartbeat thread and does nothing. It is given
   * the time-outs of what it runs, and twice the time in which probes would have seen it.
   */
  function endStalled(): void {
    for (const child of children) {
      const { silentMs, allowedMs } = child.life()
      if (silentMs <= allowedMs + 2 * options.livenessMs) continue
      options.news.stalled(child.pid, silentMs)
      child.kill('SIGKILL')
    }
  }

  function pulsesOf(child: Child): Pulse[] {
    const { silentMs, pulses } = child.life()
    const name = `worker process ${child.pid}`
    return [
      { loop: `event loop of ${name}`, quietMs: silentMs, limitMs: options.livenessMs },
      ...pulses.map((pulse) => ({ ...pulse, loop: `${pulse.loop} of ${name}` })),
    ]
  }

  async function stopAll(those: Iterable<Child>): Promise<void> {
    over.abort()
    clearInterval(looking)
    const asked = [...those]
    for (const child of asked) child.kill('SIGTERM')
    const gone = Promise.all(asked.map((child) => child.ended))
    if (await within(options.patienceMs, gone)) return
    for (const child of asked) child.kill('SIGKILL')
    await gone
  }

  return {
    start,
    stop: () => {
      stopping ??= stopAll(children).then(async () => void (await Promise.all(keeping)))
      return stopping
    },
    pulses: () => [...children].flatMap(pulsesOf),
    areHeld: () => children.size === options.processes && [...children].every((child) => child.life().isHeld),
    kill: () => {
      over.abort()
      clearInterval(looking)
      for (const child of children) child.kill('SIGKILL')
    },
    pids: () => [...children].map(({ pid }) => pid),
  }
}
