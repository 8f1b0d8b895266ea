import type { Fence } from '../job/id.ts'
import type { Store } from '../postgres/store.ts'
import { fenceOfHeld } from '../worker/claim.sql.ts'
import { beat, comeBack } from '../worker/session.sql.ts'
import { forgottenAttempts, lostByRemote, type RemoteRow } from './remote.sql.ts'
import type { LostAttempt, RemoteScope } from './remote.ts'
import { findSession, sessionEnded } from './sessions.ts'
import type { RemoteSettling } from './settle.ts'
import { entriesOf } from './validate.ts'

/** What a heartbeat needs. */
interface HeartbeatParts {
  store: Store
  settling: RemoteSettling
}

/** The attempts that a worker says it holds. */
interface Held {
  sessionId: number
  ids: string[]
  attempts: number[]
}

/** Renews the lease of a session, and says which of these attempts it has lost. Throws session_ended. */
export async function renewSession(
  { store, settling }: HeartbeatParts,
  id: number,
  given: { held: readonly Fence[] },
  scope: RemoteScope = {},
): Promise<{ leaseUntil: Date; lost: LostAttempt[] }> {
  const mine = entriesOf('held', given?.held).map(({ fence }) => fence)
  const session = await findSession(store, id, scope)
  const [renewed] = await store.contend(beat, { id, isLocked: false, leaseMs: session.remote.leaseMs })
  if (!renewed) {
    await store.run(comeBack, { id })
    await settling.refused(session, mine, 'heartbeat')
    throw sessionEnded()
  }
  const held = { sessionId: id, ids: mine.map((fence) => fence.id), attempts: mine.map((fence) => fence.attempt) }
  const lost = mine.length > 0 ? await store.run(lostByRemote, { ...held, tenant: session.tenant }) : []
  await releaseForgotten({ store, settling }, session, held)
  return { leaseUntil: renewed.lease_until, lost: lost.map(lostOf) }
}

function lostOf({ id, attempt, state }: { id: string; attempt: number; state: string | null }): LostAttempt {
  return { id, attempt, reason: state === 'cancelled' ? 'cancelled' : 'lease_lost' }
}

/**
 * Gives back attempts that were claimed in the session's name but never reached its worker. The answer to a claim may still be on its way
 * while a heartbeat is, so only attempts claimed more than a lease ago count. A heartbeat that took longer than that is useless anyway.
 */
async function releaseForgotten({ store, settling }: HeartbeatParts, session: RemoteRow, held: Held): Promise<void> {
  const forgotten = await store.run(forgottenAttempts, { ...held, olderThanMs: session.remote.leaseMs })
  await settling.giveBack(forgotten.map(fenceOfHeld))
}
