import { createHash } from 'node:crypto'

/** Chance that can be had again: the same words give the same choices. */
export interface Random {
  /** A whole number from 0 to below `limit`. */
  below(limit: number): number
  shuffled<T>(items: readonly T[]): T[]
}

/** Makes chance out of words, such as a seed and the name of a cell. */
export function randomOf(...words: (string | number)[]): Random {
  let drawn = 0
  const below = (limit: number) => {
    drawn += 1
    return (
      createHash('sha256')
        .update(`${words.join('\n')}\n${drawn}`)
        .digest()
        .readUInt32BE(0) % limit
    )
  }
  return {
    below,
    shuffled: (items) =>
      items
        .map((item) => ({ item, place: below(2 ** 31) }))
        .sort((a, b) => a.place - b.place)
        .map(({ item }) => item),
  }
}
