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
  return `coalesce((select item.barrier_id is not null from holdfast.job as item where item.id = ${event}.job_id), false)`
}

/** What an event says of the item that it is about: whose it is, its key, and its place among the items; null if it is about none. */
export function itemOf(event: string): Sql {
  return raw(`(
    select json_build_object('parent', barrier.job_id, 'key', own.item_key, 'position', own.position)
    from holdfast.job as own
    left join holdfast.barrier on barrier.id = own.barrier_id
    where own.id = ${event}.job_id and own.barrier_id is not null
  )`)
}
