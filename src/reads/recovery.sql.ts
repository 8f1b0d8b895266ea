import { eventOf, sql, statement } from '../postgres/sql.ts'
import { oldestSnapshot as held } from '../why/old-snapshot.sql.ts'
import type { SnapshotFacts } from '../why/old-snapshot.ts'

/** An orphan that was revived or quarantined, as its event describes it. */
export interface RevivalRow {
  seq: number
  at: Date
  job_id: string
  kind: string
  tenant: string
  attempt: number
  type: string
  data: unknown
}

/** The last orphans that were revived or quarantined. The types are part of the text, or their index could not be used. */
export const lastRevivals = statement<RevivalRow>()(
  'event.revivals',
  (p: { limit: number }) => sql`
  select seq, at, job_id, kind, tenant, attempt, type, data
  from holdfast.event
  where type in (${eventOf('revive')}, ${eventOf('quarantine')})
  order by seq desc
  limit ${p.limit}`,
)

/** The oldest snapshot that keeps the server from vacuuming rows left by claims and settles. */
export const oldestSnapshot = statement<{ snapshot: SnapshotFacts | null }>()(
  'snapshot.oldest',
  () => sql`select ${held} as snapshot`,
)

/** A refused write. */
export interface RefusalRow {
  at: Date
  job_id: string
  attempt: number
  session_id: number
  write: string
}

/** The last refused writes. */
export const lastRefusals = statement<RefusalRow>()(
  'refusal.last',
  (p: { limit: number }) => sql`
  select at, job_id, attempt, session_id, write
  from holdfast.refusal
  order by id desc
  limit ${p.limit}`,
)
