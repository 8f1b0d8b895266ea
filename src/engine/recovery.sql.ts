import { eventOf, sql, statement } from '../store/sql.ts'

/** An orphan that was moved on, as the log tells it. */
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

/** The last orphans that were revived or quarantined. The types stand in the text, or their index could not be used. */
export const lastRevivals = statement<RevivalRow>()(
  'event.revivals',
  (p: { limit: number }) => sql`
  select seq, at, job_id, kind, tenant, attempt, type, data
  from holdfast.event
  where type in (${eventOf('revive')}, ${eventOf('quarantine')})
  order by seq desc
  limit ${p.limit}`,
)

/** A write that came too late. */
export interface RefusalRow {
  at: Date
  job_id: string
  attempt: number
  session_id: number
  write: string
}

/** The last writes that were refused. */
export const lastRefusals = statement<RefusalRow>()(
  'refusal.last',
  (p: { limit: number }) => sql`
  select at, job_id, attempt, session_id, write
  from holdfast.refusal
  order by id desc
  limit ${p.limit}`,
)
