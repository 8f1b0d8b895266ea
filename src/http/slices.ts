/**
 * Runs long work of requests in small steps. One slice runs in each turn of the event loop, and owners take turns, so a large body delays others by
 * one slice and not by its whole time, however many its owner sends. Slices pause while small requests are in progress, because these need several
 * turns of the event loop.
 */
export class Slices {
  readonly #queues = new Map<unknown, Work[]>()
  readonly #areOthersUnderWay: () => boolean
  readonly #pauseMs: number
  #isRunning = false

  constructor(areOthersUnderWay: () => boolean = () => false, pauseMs = 4) {
    this.#areOthersUnderWay = areOthersUnderWay
    this.#pauseMs = pauseMs
  }

  /** How many pieces of work are waiting or in progress. */
  get size(): number {
    let count = 0
    for (const queue of this.#queues.values()) count += queue.length
    return count
  }

  /** Runs steps to their end, and returns their result. Work of one owner runs one piece after the other. */
  run<T>(owner: unknown, steps: Generator<undefined, T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const queue = this.#queues.get(owner)
      const work: Work = { steps, resolve: resolve as (value: unknown) => void, reject }
      if (queue) queue.push(work)
      else this.#queues.set(owner, [work])
      if (this.#isRunning) return
      this.#isRunning = true
      setImmediate(() => this.#turn())
    })
  }

  /** Resolves when long work that runs outside of slices may continue. */
  rest(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#areOthersUnderWay()) setTimeout(resolve, this.#pauseMs)
      else setImmediate(resolve)
    })
  }

  #turn(): void {
    const next = this.#queues.entries().next().value
    if (!next) {
      this.#isRunning = false
      return
    }
    const [owner, queue] = next
    // to the back of the line
    this.#queues.delete(owner)
    if (isDone(queue[0] as Work)) queue.shift()
    if (queue.length > 0) this.#queues.set(owner, queue)
    if (this.#areOthersUnderWay()) setTimeout(() => this.#turn(), this.#pauseMs)
    else setImmediate(() => this.#turn())
  }
}

interface Work {
  steps: Generator<undefined, unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

const sliceMs = 1

/** Runs one slice. Returns whether it was the last one. */
function isDone({ steps, resolve, reject }: Work): boolean {
  const untilMs = performance.now() + sliceMs
  try {
    for (;;) {
      const { done, value } = steps.next()
      if (done) {
        resolve(value)
        return true
      }
      if (performance.now() > untilMs) return false
    }
  } catch (error) {
    reject(error)
    return true
  }
}
