/** Anything that runs: `start` resolves when it is running, `stop` when nothing of it is left. Both may be called twice. */
export interface Service {
  start(): Promise<void>
  stop(): Promise<void>
}

/** Waits that long, or until the signal fires, whichever is first. Never rejects. */
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

/** Waits for something, but no longer than that. Says whether it came. */
export async function within(ms: number, awaited: Promise<unknown>): Promise<boolean> {
  const enough = new AbortController()
  const came = await Promise.race([awaited.then(() => true), pause(ms, enough.signal).then(() => false)])
  enough.abort()
  return came
}

/** A loop that runs `turn` again and again until stopped; `wake` cuts the wait between two turns short. */
export interface Loop extends Service {
  wake(): void
  /** A sign of life from within a turn that takes long for a good reason. */
  beat(): void
  /** How long it has given no sign of life; 0 while it rests between two turns. */
  quietMs(): number
}

/**
 * Makes a loop. `turn` says how long to wait before the next one. An error is reported and the loop goes on after
 * `errorPauseMs`: a loop that dies of one bad turn is how jobs get stuck.
 */
export function loop(options: {
  turn: (signal: AbortSignal) => Promise<number>
  onError: (error: unknown) => void
  errorPauseMs?: number
}): Loop {
  let stopping: AbortController | undefined
  let running: Promise<void> | undefined
  // cuts the nap short; a plain function, because a worker that is woken for a job is in a hurry
  let wakeUp: (() => void) | undefined
  let isWoken = false
  let restsUntilMs = 0
  let beatAtMs = performance.now()

  /** A report that throws must not end the loop: nobody would be left to run it. */
  function report(error: unknown): void {
    try {
      options.onError(error)
    } catch {}
  }

  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      isWoken = false
      beatAtMs = performance.now()
      let waitMs: number
      try {
        waitMs = await options.turn(signal)
      } catch (error) {
        report(error)
        waitMs = options.errorPauseMs ?? 500
      }
      // a wake during the turn must not be lost: what it announces may have come after the turn looked
      if (isWoken || signal.aborted || waitMs <= 0) continue
      restsUntilMs = performance.now() + waitMs
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, waitMs)
        wakeUp = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      wakeUp = undefined
      restsUntilMs = 0
    }
  }

  return {
    async start() {
      if (running) return
      stopping = new AbortController()
      stopping.signal.addEventListener('abort', () => wakeUp?.())
      running = run(stopping.signal)
    },
    async stop() {
      stopping?.abort()
      await running
      running = undefined
    },
    wake() {
      isWoken = true
      wakeUp?.()
    },
    beat() {
      beatAtMs = performance.now()
    },
    quietMs() {
      return running ? Math.max(0, performance.now() - Math.max(beatAtMs, restsUntilMs)) : 0
    },
  }
}
