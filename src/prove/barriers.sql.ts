import { sql, statement } from '../store/sql.ts'

/** A job that a barrier has fired. */
export interface ContinuedRow {
  job_id: string
  barrier: string
}

/** Every job that carries the name of a barrier: its continuations. */
export const continued = statement<ContinuedRow>()(
  'prove.continued',
  () => sql`
  select job.id as job_id, payload.input ->> 'barrier' as barrier
  from holdfast.job_status as job
  join holdfast.job_payload as payload on payload.job_id = job.id
  where json_typeof(payload.input) = 'object' and payload.input ->> 'barrier' is not null
  order by job.id`,
)

/** The barriers that may still move. */
export const openBarriers = statement<{ id: string }>()(
  'prove.open_barriers',
  () => sql`
  select id
  from holdfast.owned_barrier
  where fired_at is null and expired_at is null
  order by id`,
)

/** All parts have arrived, and nothing was fired: what a restored backup may hold. */
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

/** The count says what the ledger does not, and nobody has looked for long. */
export const driftByHand = statement<{ id: string }>()(
  'prove.drift',
  (p: { id: string; arrived: number }) => sql`
  update holdfast.owned_barrier
  set arrived = ${p.arrived}::int, moved_at = now() - interval '1 minute', checked_at = now() - interval '1 minute'
  where id = ${p.id}::text
  returning id`,
)

/** It expired so long ago that it can be forgotten. */
export const ageByHand = statement<{ id: string }>()(
  'prove.age',
  (p: { id: string }) => sql`
  update holdfast.owned_barrier
  set expired_at = now() - interval '30 days'
  where id = ${p.id}::text
  returning id`,
)

/** The counters of fan-outs say that all has ended, whatever their items say: what a restored backup may hold. */
export const raiseByHand = statement<{ id: string }>()(
  'prove.raise',
  () => sql`
  update holdfast.barrier
  set succeeded = succeeded + coalesce(total, 3)
  where joined_at is null
  returning id`,
)
