import { raw, type Sql } from './sql.ts'

/**
 * Whether an endpoint wants an event: it is of its tenant, of one of its types, and about no item of a fan-out, of which there may be
 * millions, unless it wants these too. The planner and the audit ask in the same words.
 */
export function isWantedBy(endpoint: string, event: string): Sql {
  return raw(
    `${endpoint}.tenant = ${event}.tenant and ${event}.type = any(${endpoint}.types) and (${endpoint}.items or not ${isItem(event)})`,
  )
}

/** Asked row by row: an `exists` might be answered by a walk over all jobs. */
function isItem(event: string): string {
  const inTable = (table: string) =>
    `(select item.barrier_id is not null from holdfast.${table} as item where item.id = ${event}.job_id)`
  return `coalesce(${inTable('live_job')}, ${inTable('finished_job')}, false)`
}
