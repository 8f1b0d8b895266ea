import { raw, type Sql, sql, statement } from '../store/sql.ts'

/** What an audit looks at. */
export interface AuditScope {
  /** How old an orphan may be before it is a violation. */
  boundMs: number
  /** How many of the latest jobs are checked where it takes a look at each, of the live ones and of the finished ones; null for all. */
  latest: number | null
}

/** A row that breaks an invariant. */
export interface ViolationRow {
  subject: string
  found: string
  total: number
}

const shown = 20

/** Wraps a check: how many rows break the rule, and the first of them. */
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
 * True if there is no such row. A plain `not exists` may be planned as a join, and with statistics of a time when the tables were nearly empty as one that compares
 * each row with each other; a scalar is looked up row by row, by an index.
 */
export const lacks = (from: Sql): Sql => sql`(select true from ${from} limit 1) is null`

/** How long one check may take. It holds for the transaction that it is set in. */
export const limitCheck = statement<never>()(
  'audit.limit',
  (p: { budgetMs: number }) => sql`select set_config('statement_timeout', ${String(Math.ceil(p.budgetMs))}, true)`,
)

/** What is older than the recovery bound. */
export const past = (p: AuditScope): Sql => sql`now() - ${p.boundMs}::float8 * interval '1 ms'`

const inLog = `submitted_at >= coalesce((select max(to_at) from holdfast.event_partition where dropped_at is not null), '-infinity')`

/** Of older jobs the log may have been dropped, so what it says of them proves nothing. */
export const isInLog = raw(inLog)

/** The same of a row `job` that has only the id. */
export const wasInLog = raw(`(select submitted.${inLog} from holdfast.job as submitted where submitted.id = job.id)`)
