import type { Runner } from '../postgres/store.ts'
import { runBatch, type Told } from '../transitions/batch.ts'
import type { Need } from '../transitions/held-rows.sql.ts'
import type { FailedRow } from './duty.ts'

/** What became of rows. */
export interface Tried<Row, Done> {
  /** What the move returned, and the rows that it moved. */
  done: Done[]
  moved: Row[]
  /** Rows that could not be moved, and rows left for later because another transaction holds them or too many others failed. */
  failed: FailedRow[]
  held: FailedRow[]
}

/** Enough time to find one slow row among many. Locked rows are not waited for. */
const usualBounds = { answerMs: 2_000, patienceMs: 24_000 }
/** How many bad rows are isolated in one run: the other duties have to wait. */
const mostRefused = 500

/**
 * Moves rows in batches that a bad row does not spoil and a locked row does not delay: it is left for the next sweep. `needOf` returns what
 * moving a row locks, if the row is about an attempt.
 */
export async function moveEach<Row extends { id: string; lost_ms: number }, Done extends { id: string }>(
  store: Runner,
  rows: readonly Row[],
  move: (runner: Runner, rows: Row[]) => Promise<Done[]>,
  needOf?: (row: Row) => Need,
  bounds = usualBounds,
): Promise<Tried<Row, Done>> {
  const told = await runBatch(store, {
    items: rows,
    isWary: true,
    mostRefused,
    ...bounds,
    ...(needOf && { needOf, jobOf: ({ id }: Row) => id }),
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
