import type { Runner } from '../../postgres/store.ts'
import { clearCrashes, findUndue, type UndueRow } from '../clear-crashes.sql.ts'
import { type Duty, type DutyReport, type Note, report } from '../duty.ts'
import { moveEach } from '../move-each.ts'
import { closeReturned, returnedSessions } from '../session.sql.ts'

const mostSessions = 20
/** Of each session. */
const mostCrashes = 500

/**
 * Takes back crashes of workers that turned out to be alive, before those crashes can quarantine a job. It walks over the sessions of these
 * workers, so that a session with a crash that can't be taken back, because its row is locked or refused, hides no other.
 */
export function clearReturned(): Duty {
  let after = 0
  return {
    name: 'clearReturned',
    everyMs: 0,
    budget: 'unlimited',
    async run(store) {
      const isFromStart = after === 0
      const sessions = (await store.run(returnedSessions, { after, limit: mostSessions })).map(({ id }) => id)
      after = sessions.length === mostSessions ? (sessions.at(-1) ?? 0) : 0
      // at the end of the walk, the first sessions are next
      return sessions.length > 0 ? clear(store, sessions) : report({ isFull: !isFromStart })
    },
  }
}

async function clear(store: Runner, sessions: number[]): Promise<DutyReport> {
  const undue = await store.run(findUndue, { sessions, limit: mostCrashes })
  const { done, failed, held } = await moveEach(store, undue, (runner, crashes: UndueRow[]) =>
    runner.run(clearCrashes, { crashes }),
  )
  const blaming = new Set(undue.map(({ session_id }) => session_id))
  const ids = sessions.filter((id) => !blaming.has(id))
  const closed = ids.length > 0 ? await store.run(closeReturned, { ids }) : []
  const notes = done.length > 0 ? [cleared(done.length, sessions)] : []
  return report({ failed, held, notes, isFull: done.length > 0 || closed.length > 0 })
}

function cleared(jobs: number, sessions: number[]): Note {
  return {
    isError: false,
    message: 'workers that had counted as dead came back; the crashes of their jobs do not count',
    facts: { jobs, sessions },
  }
}
