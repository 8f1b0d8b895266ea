/**
 * The supervisor: keeps a number of worker processes running.
 *
 * Handlers run in processes of their own, so that one that crashes, leaks or blocks takes down its process, and not the supervisor. A process
 * that exits unexpectedly is replaced: at once at first, and after growing delays if it keeps exiting. Worker processes watch the channel to their
 * supervisor in turn: if it dies, they exit too.
 */
import { pause, type Service, within } from '../service/service.ts'
import type { Pulse } from '../service/vitals.ts'
import { type Child, type ChildOptions, startChild } from './child.ts'

/** What happens to the worker processes, for messages to the user. */
export interface SupervisorObserver {
  started(pid: number): void
  ended(pid: number, how: string, againInMs: number): void
  /** Its event loop was blocked for longer than any of its handlers may run, so it is killed. */
  stalled(pid: number, silentMs: number): void
  /** It is still not ready, far later than others were, so it is killed. */
  unready(pid: number, startMs: number): void
}

/** What a supervisor needs. */
export interface SupervisorOptions extends ChildOptions {
  processes: number
  /** How long a process may take to exit once it was asked to. */
  patienceMs: number
  /** How long the event loop of a process may be blocked before it counts as stalled. */
  livenessMs: number
  /** Called as soon as a process is gone, however it exited. This is the place to take back the jobs of its session. */
  onChildExit?: ((pid: number, how: string) => Promise<void>) | undefined
  onError: (error: unknown) => void
  observer: SupervisorObserver
}

const firstWaitMs = 200
const longestWaitMs = 10_000
const healthyAfterMs = 30_000

/** How long to wait before a process is restarted that has exited this often in a row. */
export function restartDelayMs(crashes: number): number {
  return Math.min(longestWaitMs, firstWaitMs * 2 ** Math.max(0, crashes - 1))
}

/** Worker processes under supervision. `start` resolves when all of them work, and rejects if one can't. */
export class Supervisor implements Service {
  readonly #options: SupervisorOptions
  readonly #children = new Set<Child>()
  readonly #over = new AbortController()
  #supervising: Promise<void>[] = []
  #stopping: Promise<void> | undefined
  #checking: NodeJS.Timeout | undefined
  #longestStartMs = 0
  /** Processes that were killed because they did not get ready. */
  readonly #tooLate = new WeakSet<Child>()

  constructor(options: SupervisorOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    if (this.#supervising.length > 0 || this.#isOver) return
    const { processes, livenessMs } = this.#options
    this.#checking = setInterval(() => this.#killStalled(), Math.min(1_000, livenessMs / 4))
    const up = Promise.all(Array.from({ length: processes }, () => this.#bringUp(this.#startChild())))
    await up.catch(async (error) => {
      await this.stop()
      throw error
    })
  }

  /** Each process is supervised as soon as it is ready, however long the others take. */
  async #bringUp(child: Child): Promise<void> {
    const isReady = await child.ready.then(
      () => true,
      (error) => {
        if (!this.#tooLate.has(child)) throw error
        return false
      },
    )
    if (isReady) this.#options.observer.started(child.pid)
    this.#supervising.push(this.#supervise(child))
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stopAll(this.#children).then(async () => void (await Promise.all(this.#supervising)))
    return this.#stopping
  }

  /** Kills all processes at once. */
  kill(): void {
    this.#end()
    for (const child of this.#children) child.kill('SIGKILL')
  }

  pids(): number[] {
    return [...this.#children].map(({ pid }) => pid)
  }

  /** The loops of the processes, for liveness probes. */
  pulses(): Pulse[] {
    return [...this.#children].flatMap((child) => pulsesOf(child, this.#options.livenessMs))
  }

  /** Whether all processes are running and each holds its session. */
  areHeld(): boolean {
    return this.#children.size === this.#options.processes && [...this.#children].every((child) => child.life().isHeld)
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted
  }

  #startChild(): Child {
    const child = startChild(this.#options)
    this.#children.add(child)
    const noteStart = () => {
      this.#longestStartMs = Math.max(this.#longestStartMs, child.life().startMs)
    }
    child.ready.then(noteStart, () => {}) // the failure is reported elsewhere
    return child
  }

  /** Restarts a process whenever it exits. */
  async #supervise(first: Child): Promise<void> {
    const { observer, onError } = this.#options
    let child = first
    let crashes = 0
    for (;;) {
      const startedAtMs = performance.now()
      const how = await this.#exitOf(child)
      if (this.#isOver) return
      crashes = performance.now() - startedAtMs > healthyAfterMs ? 1 : crashes + 1
      const waitMs = restartDelayMs(crashes)
      observer.ended(child.pid, how, waitMs)
      await pause(waitMs, this.#over.signal)
      if (this.#isOver) return
      const next = this.#startChild()
      next.ready.then(() => observer.started(next.pid)).catch(onError)
      child = next
    }
  }

  async #exitOf(child: Child): Promise<string> {
    const { onChildExit, onError } = this.#options
    const how = await child.ended
    this.#children.delete(child)
    await onChildExit?.(child.pid, how).catch(onError)
    return how
  }

  /**
   * Kills processes that are frozen, or permanently blocked by a handler: their heartbeat threads keep their leases, but they do nothing. Each gets
   * the timeouts of what it runs, and twice the time after which probes would have noticed. Also kills those that never get ready, because
   * their module waits for something that does not come.
   */
  #killStalled(): void {
    const { livenessMs, observer } = this.#options
    for (const child of this.#children) {
      const { silentMs, allowedMs, isReady, startMs } = child.life()
      if (isReady) {
        if (silentMs <= allowedMs + 2 * livenessMs) continue
        observer.stalled(child.pid, silentMs)
      } else {
        if (startMs <= this.#patienceWithStartMs()) continue
        this.#tooLate.add(child)
        observer.unready(child.pid, startMs)
      }
      child.kill('SIGKILL')
    }
  }

  /** Modules may take minutes to load a model, so what counts as too long depends on how long it took others. The first one has all the time. */
  #patienceWithStartMs(): number {
    if (this.#longestStartMs === 0) return Number.POSITIVE_INFINITY
    return Math.max(2 * this.#options.livenessMs, 4 * this.#longestStartMs)
  }

  async #stopAll(children: Iterable<Child>): Promise<void> {
    this.#end()
    const asked = [...children]
    for (const child of asked) child.kill('SIGTERM')
    const gone = Promise.all(asked.map((child) => child.ended))
    if (await within(this.#options.patienceMs, gone)) return
    for (const child of asked) child.kill('SIGKILL')
    await gone
  }

  #end(): void {
    this.#over.abort()
    clearInterval(this.#checking)
  }
}

function pulsesOf(child: Child, livenessMs: number): Pulse[] {
  const { silentMs, pulses } = child.life()
  const name = `worker process ${child.pid}`
  return [
    { loop: `event loop of ${name}`, quietMs: silentMs, limitMs: livenessMs },
    ...pulses.map((pulse) => ({ ...pulse, loop: `${pulse.loop} of ${name}` })),
  ]
}
