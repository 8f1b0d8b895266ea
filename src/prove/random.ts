import { createHash } from 'node:crypto'

/** Reproducible randomness: the same seed words give the same choices. */
export interface Random {
  /** A whole number from 0 up to, but not including, `limit`. */
  below(limit: number): number
  shuffled<T>(items: readonly T[]): T[]
}

/** Derives randomness from words, such as a seed and the name of a cell. */
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
        .map((item) => ({ item, rank: below(2 ** 31) }))
        .sort((a, b) => a.rank - b.rank)
        .map(({ item }) => item),
  }
}
