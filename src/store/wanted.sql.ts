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

/** Whether an event is about an item of a fan-out. Asked row by row: an `exists` might be answered by a walk over all jobs. */
export function isItem(event: string): string {
  const inTable = (table: string) =>
    `(select item.barrier_id is not null from holdfast.${table} as item where item.id = ${event}.job_id)`
  return `coalesce(${inTable('live_job')}, ${inTable('finished_job')}, false)`
}

/** What an event says of the item that it is about: whose it is, its key, and its place among the items; null if it is about none. */
export function itemOf(event: string): Sql {
  return raw(`(
    select json_build_object('parent', barrier.job_id, 'key', payload.item_key, 'position', own.position)
    from (
      select live.barrier_id, live.position from holdfast.live_job as live where live.id = ${event}.job_id
      union all
      select ended.barrier_id, ended.position from holdfast.finished_job as ended where ended.id = ${event}.job_id
      limit 1
    ) as own
    left join holdfast.barrier on barrier.id = own.barrier_id
    left join holdfast.job_payload as payload on payload.job_id = ${event}.job_id
    where own.barrier_id is not null
  )`)
}
