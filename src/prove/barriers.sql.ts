import { sql, statement } from '../postgres/sql.ts'

/** A job that a barrier has fired. */
export interface ContinuedRow {
  job_id: string
  barrier: string
}

/** Every continuation of a barrier: its input names the barrier. */
export const continued = statement<ContinuedRow>()(
  'prove.continued',
  () => sql`
  select job.id as job_id, payload.input ->> 'barrier' as barrier
  from holdfast.job_status as job
  join holdfast.job_payload as payload on payload.job_id = job.id
  where json_typeof(payload.input) = 'object' and payload.input ->> 'barrier' is not null
  order by job.id`,
)

/** The barriers that have neither fired nor expired. */
export const openBarriers = statement<{ id: string }>()(
  'prove.open_barriers',
  () => sql`
  select id
  from holdfast.owned_barrier
  where fired_at is null and expired_at is null
  order by id`,
)

/** Lets all parts have arrived without firing, as in a restored backup. */
export const drainByHand = statement<{ id: string }>()(
  'prove.drain',
  (p: { id: string }) => sql`
  with arrived as (
    update holdfast.owned_part
    set arrived_at = now()
    where barrier_id = ${p.id}::text and arrived_at is null
  )
  update holdfast.owned_barrier
  set arrived = total
  where id = ${p.id}::text
  returning id`,
)

/** Sets a counter that differs from the ledger, and was last checked long ago. */
export const driftByHand = statement<{ id: string }>()(
  'prove.drift',
  (p: { id: string; arrived: number }) => sql`
  update holdfast.owned_barrier
  set arrived = ${p.arrived}::int, moved_at = now() - interval '1 minute', checked_at = now() - interval '1 minute'
  where id = ${p.id}::text
  returning id`,
)

/** Lets a barrier have expired so long ago that it can be forgotten. */
export const ageByHand = statement<{ id: string }>()(
  'prove.age',
  (p: { id: string }) => sql`
  update holdfast.owned_barrier
  set expired_at = now() - interval '30 days'
  where id = ${p.id}::text
  returning id`,
)

/** Raises the counters of all fan-outs as if every item had ended, as in a restored backup. */
export const raiseByHand = statement<{ id: string }>()(
  'prove.raise',
  () => sql`
  update holdfast.barrier
  set succeeded = succeeded + coalesce(total, 3)
  where joined_at is null
  returning id`,
)
