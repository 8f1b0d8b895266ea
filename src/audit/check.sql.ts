import { raw, type Sql, sql, statement } from '../postgres/sql.ts'

/** What an audit checks. */
export interface AuditScope {
  /** How old an orphan may be before it is a violation. */
  boundMs: number
  /** How many of the latest jobs to check where each needs a lookup, counting live and finished ones separately; null for all. */
  latest: number | null
}

/** A row that breaks an invariant. */
export interface ViolationRow {
  subject: string
  found: string
  total: number
}

const shown = 20

/** Makes a check from a query for rows that break an invariant: their number, and some of them. */
export function check(name: string, build: (p: AuditScope) => Sql) {
  return statement<ViolationRow>()(
    `audit.${name}`,
    (p: AuditScope) => sql`
  select broken.subject, broken.found, count(*) over () as total
  from (${build(p)}) as broken (subject, found)
  limit ${shown}`,
  )
}

/**
 * True if there is no such row. A plain `not exists` may be planned as a join and, with statistics from when the tables were nearly empty, as a nested
 * loop over all pairs of rows. A scalar subquery is looked up row by row, with an index.
 */
export const lacks = (from: Sql): Sql => sql`(select true from ${from} limit 1) is null`

/** Limits how long a check may take, for the current transaction. */
export const limitCheck = statement<never>()(
  'audit.limit',
  (p: { budgetMs: number }) => sql`select set_config('statement_timeout', ${String(Math.ceil(p.budgetMs))}, true)`,
)

/** The time before which something is older than the recovery bound. */
export const past = (p: AuditScope): Sql => sql`now() - ${p.boundMs}::float8 * interval '1 ms'`

const inLog = `submitted_at >= coalesce((select max(to_at) from holdfast.event_partition where dropped_at is not null), '-infinity')`

/** Whether a job is recent enough for all its events to be in the log. The log of older jobs may have been dropped, so it proves nothing. */
export const isInLog = raw(inLog)

/** The same for a row `job` that has only an id. */
export const wasInLog = raw(`(select submitted.${inLog} from holdfast.job as submitted where submitted.id = job.id)`)
