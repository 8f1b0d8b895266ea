import { isHeldUp } from '../../postgres/connection.ts'
import type { Runner } from '../../postgres/store.ts'
import { readClock } from '../clock.sql.ts'
import { DatabaseClock } from '../clock.ts'
import { type Duty, type Note, report } from '../duty.ts'
import { endDeadSessions, mostHeldUpMs } from '../session.sql.ts'

const batch = 500

/**
 * Ends dead sessions. Live ones can look dead in two cases, and it watches for both: someone sets the database clock, on which leases are
 * times; or someone locks the session table, so that no session can renew its lease.
 */
export function endSessions(): Duty {
  const clock = new DatabaseClock()
  return {
    name: 'endSessions',
    everyMs: 0,
    budget: 'unlimited',
    async run(store) {
      const { stepMs, atMs } = await watch(store, clock)
      const steadiness = { steadyMs: clock.steadyMs(atMs), watchedMs: clock.watchedMs(atMs) }
      const ended = await store.run(endDeadSessions, { limit: batch, ...steadiness })
      return report({ ended, isFull: ended.length === batch, notes: stepMs === 0 ? [] : [clockWasSet(stepMs)] })
    },
  }
}

/** Reads the clock of the database. Returns by how much it was set since the last reading, and when the answer arrived. */
async function watch(store: Runner, clock: DatabaseClock): Promise<{ stepMs: number; atMs: number }> {
  const askedMs = performance.now()
  const [read] = await store.run(readClock, {}).catch((error) => {
    if (isHeldUp(error)) clock.noteHeldUp(performance.now())
    throw error
  })
  const { now_ms: nowMs, held_up_ms: heldUpMs } = read as { now_ms: number; held_up_ms: number }
  const heardMs = performance.now()
  const stepMs = clock.note({ nowMs, askedMs, heardMs })
  if (heldUpMs >= mostHeldUpMs) clock.noteHeldUp(heardMs)
  return { stepMs, atMs: heardMs }
}

function clockWasSet(stepMs: number): Note {
  return {
    isError: true,
    message: 'the database clock changed; giving workers time to renew their leases',
    facts: { stepMs: Math.round(stepMs) },
  }
}
