import { isConnectionError } from '../store/connection.ts'
import type { FailedRow } from './duties.ts'

/** What became of rows: what their move answered, and which of them could not be moved. */
export interface Tried<Done> {
  done: Done[]
  failed: FailedRow[]
}

/** Moves all at once; if one bad row spoils the batch, moves each alone, so that it blocks nobody. */
export async function oneByOne<Row extends { id: string; lost_ms: number }, Done>(
  rows: readonly Row[],
  move: (rows: readonly Row[]) => Promise<Done[]>,
): Promise<Tried<Done>> {
  if (rows.length === 0) return { done: [], failed: [] }
  try {
    return { done: await move(rows), failed: [] }
  } catch (error) {
    // no row is to blame for a broken wire, and asking for each one again would hold up the sweep for as long as it is broken
    if (isConnectionError(error)) throw error
    const [only, ...others] = rows
    if (only && others.length === 0) return { done: [], failed: [{ id: only.id, lost_ms: only.lost_ms, error }] }
    const all: Tried<Done> = { done: [], failed: [] }
    for (const row of rows) {
      const one = await oneByOne([row], move)
      all.done.push(...one.done)
      all.failed.push(...one.failed)
    }
    return all
  }
}
