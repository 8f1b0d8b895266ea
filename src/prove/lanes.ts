/** Processes items, at most `lanes` at once. Returns the answers in the order of the items. */
export async function inLanes<Item, Answer>(
  items: readonly Item[],
  lanes: number,
  work: (item: Item) => Promise<Answer>,
): Promise<Answer[]> {
  const answers: Answer[] = []
  let next = 0
  async function lane(): Promise<void> {
    while (next < items.length) {
      const index = next
      next += 1
      answers[index] = await work(items[index] as Item)
    }
  }
  await Promise.all(Array.from({ length: Math.max(1, Math.min(lanes, items.length)) }, lane))
  return answers
}
