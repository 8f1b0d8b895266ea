/** Anything that runs: `start` resolves once it is running, `stop` once nothing of it is left. Both may be called twice. */
export interface Service {
  start(): Promise<void>
  stop(): Promise<void>
}

/** Waits for this long, or until the signal fires, whichever comes first. Never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/** Waits for a promise, but no longer than this. Returns whether it resolved in time; rejects if it does. */
export async function within(ms: number, awaited: Promise<unknown>): Promise<boolean> {
  const ended = new AbortController()
  try {
    return await Promise.race([awaited.then(() => true), pause(ms, ended.signal).then(() => false)])
  } finally {
    ended.abort()
  }
}

/** A loop that runs `turn` until it is stopped; `wake` cuts the wait between two turns short. */
export interface Loop extends Service {
  wake(): void
  /** Shows that the loop is alive during a turn that takes long for a good reason. */
  beat(): void
  /** How long the loop has shown no sign of life; 0 while it waits between two turns. */
  quietMs(): number
}

/** What a loop does. */
export interface LoopOptions {
  /** Returns how long to wait before the next turn. */
  turn: (signal: AbortSignal) => Promise<number>
  onError: (error: unknown) => void
  /** How long to wait after a turn that threw. Default: 500 ms. */
  errorPauseMs?: number
}

/** Makes a loop. An error is reported and the loop continues: a loop that dies of one bad turn is how jobs get stuck. */
export function loop(options: LoopOptions): Loop {
  return new TurnLoop(options)
}

class TurnLoop implements Loop {
  readonly #options: LoopOptions
  #stopping: AbortController | undefined
  #running: Promise<void> | undefined
  // a plain function and no signal: a worker that is woken for a job is in a hurry
  #endWait: (() => void) | undefined
  #isWoken = false
  #waitsUntilMs = 0
  #beatAtMs = performance.now()

  constructor(options: LoopOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    if (this.#running) return
    this.#stopping = new AbortController()
    this.#stopping.signal.addEventListener('abort', () => this.#endWait?.())
    this.#running = this.#run(this.#stopping.signal)
  }

  async stop(): Promise<void> {
    this.#stopping?.abort()
    await this.#running
    this.#running = undefined
  }

  wake(): void {
    this.#isWoken = true
    this.#endWait?.()
  }

  beat(): void {
    this.#beatAtMs = performance.now()
  }

  quietMs(): number {
    return this.#running ? Math.max(0, performance.now() - Math.max(this.#beatAtMs, this.#waitsUntilMs)) : 0
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#isWoken = false
      this.beat()
      const waitMs = await this.#turn(signal)
      // a wake-up during the turn must not be lost: what it announces may have come after the turn looked
      if (!this.#isWoken && !signal.aborted && waitMs > 0) await this.#wait(waitMs)
    }
  }

  async #turn(signal: AbortSignal): Promise<number> {
    try {
      return await this.#options.turn(signal)
    } catch (error) {
      this.#report(error)
      return this.#options.errorPauseMs ?? 500
    }
  }

  /** A report that throws must not end the loop: nothing would start it again. */
  #report(error: unknown): void {
    try {
      this.#options.onError(error)
    } catch {}
  }

  async #wait(ms: number): Promise<void> {
    this.#waitsUntilMs = performance.now() + ms
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#endWait = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#endWait = undefined
    this.#waitsUntilMs = 0
  }
}
