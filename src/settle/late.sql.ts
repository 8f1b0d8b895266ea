import { plainList } from '../postgres/array-text.ts'
import { sql, statement } from '../postgres/sql.ts'
import { deadlineOf } from '../transitions/leases.sql.ts'

/**
 * Extends the deadlines of leases that would otherwise pass within `beforeMs`, so that they pass in `byMs`. Leases that another
 * transaction has locked are skipped: nobody can revive their attempts either.
 */
export const extendDeadlines = statement<never>()(
  'lease.extend',
  (p: { leaseIds: readonly number[]; beforeMs: number; byMs: number }) => sql`
  update holdfast.lease
  set deadline_at = lease.deadline_at + (now() + ${p.byMs}::float8 * interval '1 ms' - ${deadlineOf('lease')})
  where lease.id = any(array(
    select lease.id
    from holdfast.lease
    where lease.id = any(${plainList(p.leaseIds)}::bigint[]) and ${deadlineOf('lease')} < now() + ${p.beforeMs}::float8 * interval '1 ms'
    for no key update skip locked
  ))`,
)
