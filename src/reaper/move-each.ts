import { runBatch, type Told } from '../store/batch.ts'
import type { Runner } from '../store/store.ts'
import type { FailedRow } from './duties.ts'

/** What became of rows. */
export interface Tried<Row, Done> {
  /** What the move answered, and the rows that it moved. */
  done: Done[]
  moved: Row[]
  /** Those that could not be moved, and why; and those that another transaction holds. */
  failed: FailedRow[]
  held: FailedRow[]
}

/** Enough time to find a row that always takes too long among many; whoever holds a row is not waited for. */
const usualBounds = { answerMs: 2_000, patienceMs: 24_000 }

/**
 * Moves rows in batches that one bad row does not spoil and one locked row does not hold up: it is left for the next sweep. `leaseOf` names
 * the lease that a row is about, if it is about one.
 */
export async function moveEach<Row extends { id: string; lost_ms: number }, Done extends { id: string }>(
  store: Runner,
  rows: readonly Row[],
  move: (runner: Runner, rows: Row[]) => Promise<Done[]>,
  leaseOf?: (row: Row) => number,
  bounds = usualBounds,
): Promise<Tried<Row, Done>> {
  const told = await runBatch(store, {
    items: rows,
    isWary: true,
    ...bounds,
    ...(leaseOf && { leaseOf, jobOf: ({ id }: Row) => id }),
    async run(runner, some) {
      const byId = new Map((await move(runner, some)).map((row) => [row.id, row]))
      return some.map(({ id }) => byId.get(id))
    },
  })
  const tried: Tried<Row, Done> = { done: [], moved: [], failed: [], held: [] }
  for (const [index, row] of rows.entries()) note(tried, row, told[index] as Told<Done | undefined>)
  return tried
}

function note<Row extends { id: string; lost_ms: number }, Done>(
  tried: Tried<Row, Done>,
  row: Row,
  told: Told<Done | undefined>,
): void {
  if (told.is !== 'done')
    tried[told.is === 'held' ? 'held' : 'failed'].push({ id: row.id, lost_ms: row.lost_ms, error: told.error })
  else if (told.answer !== undefined) {
    tried.done.push(told.answer)
    tried.moved.push(row)
  }
}
