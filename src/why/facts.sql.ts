import { sql, statement } from '../store/sql.ts'
import type { Facts } from './facts.ts'

/** A snapshot that a settle kept. */
export interface SnapshotRow {
  at: string
  attempt: number
  event: string
  /** With `trouble` in place of all else if they could not be read. */
  facts: Facts | { trouble: string }
}

/** What every source says about a job, with the last snapshots of it. Without facts: no source knows it. */
export const readFacts = statement<{ facts: Facts | null; snapshots: SnapshotRow[] }>()(
  'why.facts',
  (p: { id: string; shown: number }) => sql`
  select holdfast.facts_of(${p.id}::uuid, true) as facts, coalesce((
    select json_agg(json_build_object('at', last.at, 'attempt', last.attempt, 'event', last.event, 'facts', last.facts) order by last.attempt)
    from (
      select *
      from holdfast.snapshot
      where snapshot.job_id = ${p.id}::uuid
      order by snapshot.attempt desc
      limit ${p.shown}
    ) as last
  ), '[]') as snapshots`,
)

/** Forgets snapshots of long ago. */
export const forgetSnapshots = statement<{ job_id: string }>()(
  'snapshot.forget',
  (p: { olderThanMs: number; limit: number }) => sql`
  delete from holdfast.snapshot
  where (job_id, attempt) in (
    select job_id, attempt
    from holdfast.snapshot
    where at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
    order by at
    limit ${p.limit}
  ) and at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
  returning job_id`,
)
