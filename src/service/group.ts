/** Collects what many callers want to write and writes it together. */
export interface Group<Item, Answer> {
  /** Adds an item; resolves with its answer once the group that it travels in is written. */
  add(item: Item): Promise<Answer>
  /** Resolves when nothing is waiting or under way. */
  idle(): Promise<void>
  /** How many items are waiting or under way. */
  readonly size: number
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
  write: (items: Item[]) => Promise<Answer[]>
}): Group<Item, Answer> {
  const waiting: Waiting<Item, Answer>[] = []
  let underWay = 0
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
      const batch = waiting.splice(0, options.most)
      underWay += 1
      itemsUnderWay += batch.length
      void carry(batch)
    }
  }

  async function carry(batch: Waiting<Item, Answer>[]): Promise<void> {
    try {
      const answers = await options.write(batch.map(({ item }) => item))
      for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    underWay -= 1
    itemsUnderWay -= batch.length
    if (waiting.length > 0) return schedule()
    if (underWay > 0) return
    const free = idlers
    idlers = []
    for (const resolve of free) resolve()
  }

  return {
    add: (item) =>
      new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject })
        schedule()
      }),
    idle: () => (waiting.length + underWay === 0 ? Promise.resolve() : new Promise((resolve) => idlers.push(resolve))),
    get size() {
      return waiting.length + itemsUnderWay
    },
  }
}
