import { messageOf } from '../errors/errors.ts'
import type { Runner } from '../postgres/store.ts'
import { type DutyReport, type Note, report } from './duty.ts'
import { type Bad, RowByRow } from './row-by-row.ts'
import { type EndedRow, openSessions } from './session.sql.ts'

const batch = 500

/** Makes a way to end sessions together, or one by one if a row that is refused spoils that. */
export function ending(): (
  store: Runner,
  end: (runner: Runner, page: { limit: number; only?: number[] | undefined }) => Promise<EndedRow[]>,
) => Promise<DutyReport> {
  const sessions = new RowByRow<number, EndedRow>({ list: openSessions, start: 0, idOf: ({ id }) => id })
  return async (store, end) => {
    const { rows, failed } = await sessions.run(store, (runner, only) => end(runner, { limit: batch, only }))
    return report({ ended: rows, notes: failed.map(couldNotEnd), isFull: rows.length === batch })
  }
}

function couldNotEnd({ id, error }: Bad<number>): Note {
  return { isError: true, message: 'could not end a session', facts: { session: id, reason: messageOf(error) } }
}
