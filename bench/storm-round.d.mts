/** What one round of the storm has shown. `wrongs` is empty if all held. */
export interface Round {
  wrongs: string[]
  ms: number
  kills: number
  revived: number
}

/** Runs one fan-out while worker processes are killed at random, and checks what is left in the database. */
export function stormRound(options: {
  url: string
  /** The database that the workers connect to, if it is another one. */
  workerUrl?: string
  items?: number
  workers?: number
  everyMs?: number
}): Promise<Round>
