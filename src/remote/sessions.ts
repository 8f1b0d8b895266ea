import { HoldfastError } from '../errors/errors.ts'
import type { Store } from '../postgres/store.ts'
import { findRemote, type RemoteRow } from './remote.sql.ts'
import type { RemoteScope } from './remote.ts'

/** Finds the session of a remote worker. Throws session_not_found, even if it belongs to another owner. */
export async function findSession(store: Store, id: number, { owner }: RemoteScope = {}): Promise<RemoteRow> {
  const [row] = Number.isSafeInteger(id) && id > 0 ? await store.run(findRemote, { id }) : []
  if (row && (owner === undefined || owner === null || row.owner === owner)) return row
  throw new HoldfastError('session_not_found', 'No remote worker session has that id.')
}

/** Finds a session that has not ended. Throws session_not_found or session_ended. */
export async function findOpenSession(store: Store, id: number, scope: RemoteScope = {}): Promise<RemoteRow> {
  const session = await findSession(store, id, scope)
  if (session.is_ended) throw sessionEnded()
  return session
}

/** Tells a worker that its session has ended. */
export function sessionEnded(): HoldfastError {
  return new HoldfastError(
    'session_ended',
    'The session has ended and all its attempts were reassigned. Abort them, and open a new session.',
  )
}
