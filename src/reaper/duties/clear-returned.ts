import { clearCrashes, findUndue, type UndueRow } from '../clear-crashes.sql.ts'
import { type Duty, type Note, report } from '../duty.ts'
import { moveEach } from '../move-each.ts'
import { closeReturned, returnedSessions } from '../session.sql.ts'

const mostSessions = 20
const mostCrashes = 5_000

/** Takes back crashes of workers that turned out to be alive, before those crashes can quarantine a job. */
export const clearReturned: Duty = {
  name: 'clearReturned',
  everyMs: 0,
  budget: 'unlimited',
  async run(store) {
    const sessions = (await store.run(returnedSessions, { limit: mostSessions })).map(({ id }) => id)
    if (sessions.length === 0) return report({})
    const undue = await store.run(findUndue, { sessions, limit: mostCrashes })
    const { done, failed, held } = await moveEach(store, undue, (runner, crashes: UndueRow[]) =>
      runner.run(clearCrashes, { crashes }),
    )
    const closed = undue.length === 0 ? await store.run(closeReturned, { ids: sessions }) : []
    const notes = done.length > 0 ? [cleared(done.length, sessions)] : []
    return report({ failed, held, notes, isFull: done.length > 0 || closed.length > 0 })
  },
}

function cleared(jobs: number, sessions: number[]): Note {
  return {
    isError: false,
    message: 'workers that had counted as dead came back; the crashes of their jobs do not count',
    facts: { jobs, sessions },
  }
}
