/**
 * Long work of requests, done a little at a time. One slice runs in each turn of the event loop, and the owners take turns, so a large body costs its neighbors
 * a slice and not its whole time, however many its owner sends. A request takes several turns of the loop: while others are under way, slices pause in between.
 */
export class Slices {
  readonly #queues = new Map<string, Work[]>()
  readonly #areOthersUnderWay: () => boolean
  #isRunning = false

  constructor(areOthersUnderWay: () => boolean = () => false) {
    this.#areOthersUnderWay = areOthersUnderWay
  }

  /** How much work is waiting or under way. */
  get size(): number {
    let count = 0
    for (const queue of this.#queues.values()) count += queue.length
    return count
  }

  /** Runs the steps to their end, and answers what they return. Those of one owner run one after the other. */
  run<T>(owner: string, steps: Generator<undefined, T>): Promise<T> {
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

  #turn(): void {
    const next = this.#queues.entries().next().value
    if (!next) {
      this.#isRunning = false
      return
    }
    const [owner, queue] = next
    // to the back: the others have their turns first
    this.#queues.delete(owner)
    if (isDone(queue[0] as Work)) queue.shift()
    if (queue.length > 0) this.#queues.set(owner, queue)
    if (this.#areOthersUnderWay()) setTimeout(() => this.#turn(), pauseMs)
    else setImmediate(() => this.#turn())
  }
}

interface Work {
  steps: Generator<undefined, unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

const sliceMs = 2
const pauseMs = 8

/** Works for a slice; answers whether that was the last one. */
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
