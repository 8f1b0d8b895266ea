import { raw, type Sql } from '../postgres/sql.ts'

/**
 * Whether an endpoint wants an event: the event belongs to its tenant, has one of its types, and is not about an item of a fan-out, unless
 * the endpoint wants those too (there may be millions). Shared by the planner and the audit.
 */
export function isWantedBy(endpoint: string, event: string): Sql {
  return raw(
    `${endpoint}.tenant = ${event}.tenant and ${event}.type = any(${endpoint}.types) and (${endpoint}.items or not ${isItem(event)})`,
  )
}

/** Whether an event is about an item of a fan-out. A subquery per row: the planner might turn an `exists` into a scan of all jobs. */
export function isItem(event: string): string {
  return `coalesce((select item.barrier_id is not null from holdfast.job as item where item.id = ${event}.job_id), false)`
}

/** What an event says about its item: the parent, the key and the position; null if the event is not about an item. */
export function itemOf(event: string): Sql {
  return raw(`(
    select json_build_object('parent', barrier.job_id, 'key', own.item_key, 'position', own.position)
    from holdfast.job as own
    left join holdfast.barrier on barrier.id = own.barrier_id
    where own.id = ${event}.job_id and own.barrier_id is not null
  )`)
}
