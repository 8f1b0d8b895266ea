/** The known word that a misspelled one most likely means; undefined if none is close. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const most = Math.max(1, Math.floor(word.length / 3))
  const [best] = known
    .map((one) => ({ one, distance: distance(word.toLowerCase(), one.toLowerCase()) }))
    .filter((candidate) => candidate.distance <= most)
    .sort((a, b) => a.distance - b.distance)
  return best?.one
}

/** How many letters must be changed, added, removed or swapped to turn one word into the other. */
export function distance(a: string, b: string): number {
  let before: number[] = []
  let above = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row += 1) {
    const line = [row]
    for (let column = 1; column <= b.length; column += 1) {
      const isSame = a[row - 1] === b[column - 1]
      const changed = (above[column - 1] ?? 0) + (isSame ? 0 : 1)
      let least = Math.min(changed, (above[column] ?? 0) + 1, (line[column - 1] ?? 0) + 1)
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1])
        least = Math.min(least, (before[column - 2] ?? 0) + 1)
      line.push(least)
    }
    before = above
    above = line
  }
  return above[b.length] ?? 0
}
