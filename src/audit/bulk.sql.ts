import { sql } from '../postgres/sql.ts'
import { check, past } from './check.sql.ts'

/** The checks of bulk operations. */
export const bulkChecks = {
  'bulk-goes-on': check(
    'bulk_goes_on',
    (p) => sql`
    select bulk.id::text, format('is running, but nobody has carried it on since %s', greatest(bulk.lease_until, bulk.next_at))
    from holdfast.bulk
    where bulk.state = 'running' and greatest(bulk.lease_until, bulk.next_at) < ${past(p)}
      and exists (select from holdfast.leader where lease_until > now() and acquired_at < ${past(p)})
      -- operations take turns
      and not exists (select from holdfast.bulk as other where other.state = 'running' and other.moved_at > ${past(p)})`,
  ),
  'bulk-skips-are-counted': check(
    'bulk_skips_are_counted',
    () => sql`
    select bulk.id::text, format('lists %s skipped jobs, but counts %s', listed.count, bulk.skipped)
    from holdfast.bulk
    cross join lateral (select count(*) from holdfast.bulk_skip as skip where skip.bulk_id = bulk.id) as listed
    where listed.count > bulk.skipped`,
  ),
} as const
