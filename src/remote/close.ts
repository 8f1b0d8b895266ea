import type { Store } from '../postgres/store.ts'
import { fenceOfHeld, unheldAttempts } from '../worker/claim.sql.ts'
import { closeSession } from '../worker/session.sql.ts'
import type { RemoteClaims } from './claims.ts'
import { endOwned } from './remote.sql.ts'
import type { RemoteScope } from './remote.ts'
import { findSession } from './sessions.ts'
import type { RemoteSettling } from './settle.ts'

/** What it takes to end sessions. */
interface ClosingParts {
  store: Store
  settling: RemoteSettling
  claims: RemoteClaims
}

/** Gives back everything that a session holds, and ends it. */
export async function closeRemote(parts: ClosingParts, id: number, scope: RemoteScope = {}): Promise<void> {
  await findSession(parts.store, id, scope)
  await parts.claims.endOf((sessionId) => sessionId === id)
  await giveBackAll(parts, id)
  await parts.store.contend(closeSession, { id })
  // another server may have claimed in its name in the meantime
  await giveBackAll(parts, id)
}

/**
 * Ends all sessions of an owner, and gives back what they hold. Returns how many there were. The rows are ended first, in one statement, so
 * that from then on every server refuses their claims and heartbeats.
 */
export async function endSessionsOf(parts: ClosingParts, owner: string): Promise<number> {
  const ended = new Set((await parts.store.run(endOwned, { owner })).map(({ id }) => id))
  await parts.claims.endOf((sessionId) => ended.has(sessionId))
  for (const id of ended) await giveBackAll(parts, id)
  return ended.size
}

async function giveBackAll({ store, settling }: ClosingParts, sessionId: number): Promise<void> {
  const held = await store.run(unheldAttempts, { sessionId, leaseIds: [] })
  await settling.giveBack(held.map(fenceOfHeld))
}
