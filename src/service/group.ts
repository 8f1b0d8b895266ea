/** Collects what many callers want to write, and writes it together. */
export interface Group<Item, Answer> {
  /** Adds an item; resolves with its answer once its batch is written. */
  add(item: Item): Promise<Answer>
  /** The same without a promise. */
  put(item: Item, resolve: (answer: Answer) => void, reject: (error: unknown) => void): void
  /** Resolves when no item is waiting or being written. */
  idle(): Promise<void>
  /** How many items are waiting or being written. */
  readonly size: number
  /** The size in bytes of the items that are waiting or being written. */
  readonly weight: number
  /** The part of it whose answer is late. */
  readonly lateWeight: number
}

/** An answer that arrives after those of the rest of its batch: only the caller who asked for it waits. */
export class Late<Answer> {
  readonly answer: Promise<Answer>

  constructor(answer: Promise<Answer>) {
    this.answer = answer
  }
}

/** The maximum number of bytes in one write: more might not fit into a string, or take too long. */
export const mostWeight = 16 * 1024 * 1024

/** How many items, counted from `from`, make one batch: at least one, at most `most`, and no heavier than `heaviest`. */
export function sizeOfBatch<Item>(
  items: readonly Item[],
  from: number,
  most: number,
  weightOf: (item: Item) => number,
  heaviest = mostWeight,
): number {
  const last = Math.min(items.length, from + most)
  let weight = 0
  for (let index = from; index < last; index++) {
    weight += weightOf(items[index] as Item)
    if (index > from && weight > heaviest) return index - from
  }
  return last - from
}

/** How a group writes. */
export interface GroupOptions<Item, Answer> {
  /** The maximum number of items in one batch. */
  most: number
  /** How many batches may be written at the same time. */
  lanes: number
  /** The approximate size of an item in bytes, to limit the size of a batch. */
  weightOf?: (item: Item) => number
  /** Writes a batch and returns one answer per item, in the same order. */
  write: (items: Item[]) => Promise<(Answer | Late<Answer>)[]>
}

/**
 * Makes a group. A single item is written at the end of the current turn of the event loop: it waits for no other. While all `lanes` are
 * busy, new items collect, and are written together as soon as a lane is free. So batches grow with the load, and no timer is needed.
 */
export function group<Item, Answer>(options: GroupOptions<Item, Answer>): Group<Item, Answer> {
  return new WriteGroup(options)
}

interface Waiting<Item, Answer> {
  item: Item
  resolve: (answer: Answer) => void
  reject: (error: unknown) => void
}

class WriteGroup<Item, Answer> implements Group<Item, Answer> {
  readonly #options: GroupOptions<Item, Answer>
  readonly #weightOf: (waiting: Waiting<Item, Answer>) => number
  readonly #waiting: Waiting<Item, Answer>[] = []
  #batches = 0
  #itemsInBatches = 0
  #lateAnswers = 0
  #weight = 0
  #lateWeight = 0
  #isScheduled = false
  #idlers: (() => void)[] = []

  constructor(options: GroupOptions<Item, Answer>) {
    this.#options = options
    this.#weightOf = ({ item }) => options.weightOf?.(item) ?? 0
  }

  get size(): number {
    return this.#waiting.length + this.#itemsInBatches + this.#lateAnswers
  }

  get weight(): number {
    return this.#weight
  }

  get lateWeight(): number {
    return this.#lateWeight
  }

  add(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => this.put(item, resolve, reject))
  }

  put(item: Item, resolve: (answer: Answer) => void, reject: (error: unknown) => void): void {
    const one = { item, resolve, reject }
    this.#waiting.push(one)
    this.#weight += this.#weightOf(one)
    this.#schedule()
  }

  idle(): Promise<void> {
    return this.#isIdle() ? Promise.resolve() : new Promise((resolve) => this.#idlers.push(resolve))
  }

  #schedule(): void {
    if (this.#isScheduled || this.#batches >= this.#options.lanes) return
    this.#isScheduled = true
    setImmediate(() => this.#writeWaiting())
  }

  #writeWaiting(): void {
    this.#isScheduled = false
    while (this.#waiting.length > 0 && this.#batches < this.#options.lanes) {
      const size = sizeOfBatch(this.#waiting, 0, this.#options.most, this.#weightOf)
      void this.#write(this.#waiting.splice(0, size))
    }
  }

  async #write(batch: Waiting<Item, Answer>[]): Promise<void> {
    this.#batches += 1
    this.#itemsInBatches += batch.length
    try {
      const answers = await this.#options.write(batch.map(({ item }) => item))
      for (const [index, one] of batch.entries()) this.#answer(one, answers[index] as Answer | Late<Answer>)
    } catch (error) {
      for (const one of batch) {
        this.#weight -= this.#weightOf(one)
        call(one.reject, error)
      }
    }
    this.#batches -= 1
    this.#itemsInBatches -= batch.length
    if (this.#waiting.length > 0) this.#schedule()
    else this.#resolveIdlers()
  }

  #answer(one: Waiting<Item, Answer>, answer: Answer | Late<Answer>): void {
    if (answer instanceof Late) {
      void this.#answerLate(one, answer)
      return
    }
    this.#weight -= this.#weightOf(one)
    call(one.resolve, answer)
  }

  async #answerLate(one: Waiting<Item, Answer>, late: Late<Answer>): Promise<void> {
    this.#lateAnswers += 1
    this.#lateWeight += this.#weightOf(one)
    await late.answer.then(
      (answer) => call(one.resolve, answer),
      (error) => call(one.reject, error),
    )
    this.#lateAnswers -= 1
    this.#lateWeight -= this.#weightOf(one)
    this.#weight -= this.#weightOf(one)
    this.#resolveIdlers()
  }

  #isIdle(): boolean {
    return this.#waiting.length + this.#batches + this.#lateAnswers === 0
  }

  #resolveIdlers(): void {
    if (!this.#isIdle()) return
    for (const resolve of this.#idlers.splice(0)) resolve()
  }
}

/** Calls a caller back. If it throws, that must not keep the others from their answers, so it is thrown outside of the loop. */
function call<T>(callback: (value: T) => void, value: T): void {
  try {
    callback(value)
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
