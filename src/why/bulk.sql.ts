import { announces } from '../job/machine.ts'
import { raw, type Sql, sql } from '../postgres/sql.ts'
import { lastEvents } from '../transitions/facts.sql.ts'

const acts = raw(
  [announces('cancel'), announces('redo'), 'job.reprioritized', 'job.rescheduled']
    .map((type) => `'${type}'`)
    .join(', '),
)

/** The bulk operation that changed a job last, if one of its last events names it. */
export const bulkOf = (id: Sql, mostEvents: number): Sql => sql`(
      select json_build_object('id', bulk.id, 'operation', bulk.operation, 'state', bulk.state, 'nextAt', bulk.next_at, 'leaseUntil', bulk.lease_until)
      from ${lastEvents(id, mostEvents)}
      join holdfast.bulk on bulk.id = case when last.type in (${acts}) then (last.data ->> 'bulk')::uuid end
      order by last.seq desc
      limit 1
    )`
