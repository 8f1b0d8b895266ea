/** Collects what many callers want to write and writes it together. */
export interface Group<Item, Answer> {
  /** Adds an item; resolves with its answer once the group that it travels in is written. */
  add(item: Item): Promise<Answer>
  /** The same without a promise. */
  put(item: Item, resolve: (answer: Answer) => void, reject: (error: unknown) => void): void
  /** Resolves when nothing is waiting or under way. */
  idle(): Promise<void>
  /** How many items are waiting or under way. */
  readonly size: number
}

/** An answer that comes later than those of the others: nobody waits for it but whoever asked. */
export class Late<Answer> {
  readonly answer: Promise<Answer>

  constructor(answer: Promise<Answer>) {
    this.answer = answer
  }
}

/** The most bytes in one write: more might not fit into a text, nor into the time for an answer. */
export const mostWeight = 16 * 1024 * 1024

/** How many of these items, from there on, travel together: at least one, at most so many, and not more than one write can carry. */
export function sizeOfBatch<Item>(
  items: readonly Item[],
  from: number,
  most: number,
  weightOf: (item: Item) => number,
): number {
  const last = Math.min(items.length, from + most)
  let weight = 0
  for (let index = from; index < last; index++) {
    weight += weightOf(items[index] as Item)
    if (index > from && weight > mostWeight) return index - from
  }
  return last - from
}

interface Waiting<Item, Answer> {
  item: Item
  resolve: (answer: Answer) => void
  reject: (error: unknown) => void
}

/**
 * Makes a group. A lone item leaves at the end of the current turn of the event loop: it waits for nobody. While `lanes`
 * writes are under way, newcomers gather and leave together as soon as one comes back, so batches grow with the load
 * and no timer is needed.
 */
export function group<Item, Answer>(options: {
  most: number
  lanes: number
  /** How many bytes an item is, more or less: those that are too heavy together do not travel together. */
  weightOf?: (item: Item) => number
  write: (items: Item[]) => Promise<(Answer | Late<Answer>)[]>
}): Group<Item, Answer> {
  const waiting: Waiting<Item, Answer>[] = []
  let underWay = 0
  let lateCount = 0
  let itemsUnderWay = 0
  let isScheduled = false
  let idlers: (() => void)[] = []

  function schedule(): void {
    if (isScheduled || underWay >= options.lanes) return
    isScheduled = true
    setImmediate(leave)
  }

  function leave(): void {
    isScheduled = false
    while (waiting.length > 0 && underWay < options.lanes) {
      const batch = waiting.splice(
        0,
        sizeOfBatch(waiting, 0, options.most, ({ item }) => options.weightOf?.(item) ?? 0),
      )
      underWay += 1
      itemsUnderWay += batch.length
      void carry(batch)
    }
  }

  async function carry(batch: Waiting<Item, Answer>[]): Promise<void> {
    const tell = await options.write(batch.map(({ item }) => item)).then(
      (answers) => (one: Waiting<Item, Answer>, index: number) => tellOne(one, answers[index] as Answer | Late<Answer>),
      (error) => (one: Waiting<Item, Answer>) => one.reject(error),
    )
    for (const [index, one] of batch.entries()) guarded(() => tell(one, index))
    underWay -= 1
    itemsUnderWay -= batch.length
    if (waiting.length > 0) return schedule()
    tellIdle()
  }

  function tellOne(one: Waiting<Item, Answer>, answer: Answer | Late<Answer>): void {
    if (answer instanceof Late) void tellLate(one, answer)
    else one.resolve(answer)
  }

  async function tellLate(one: Waiting<Item, Answer>, late: Late<Answer>): Promise<void> {
    lateCount += 1
    const tell = await late.answer.then(
      (answer) => () => one.resolve(answer),
      (error) => () => one.reject(error),
    )
    guarded(tell)
    lateCount -= 1
    tellIdle()
  }

  function isIdle(): boolean {
    return waiting.length + underWay + lateCount === 0
  }

  function tellIdle(): void {
    if (!isIdle()) return
    const free = idlers
    idlers = []
    for (const resolve of free) resolve()
  }

  function put(item: Item, resolve: (answer: Answer) => void, reject: (error: unknown) => void): void {
    waiting.push({ item, resolve, reject })
    schedule()
  }

  return {
    put,
    add: (item) => new Promise((resolve, reject) => put(item, resolve, reject)),
    idle: () => (isIdle() ? Promise.resolve() : new Promise((resolve) => idlers.push(resolve))),
    get size() {
      return waiting.length + itemsUnderWay + lateCount
    },
  }
}

/** Whoever is told must not keep the others from being told: what it throws is nobody's but its own. */
function guarded(tell: () => void): void {
  try {
    tell()
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
