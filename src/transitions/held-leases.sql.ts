import { sql, statement } from '../postgres/sql.ts'
import { heldPlace } from './leases.sql.ts'

/** Which of these leases another transaction has locked. The others are locked for this one, so its next statements need not wait for them. */
export const heldLeases = statement<{ id: number }>()(
  'lease.held',
  (p: { ids: number[] }) => sql`
  with free as materialized (
    select lease.id
    from holdfast.lease
    where lease.id = any(${p.ids}::bigint[])
    for no key update skip locked
  )
  select lease.id
  from holdfast.lease
  where lease.id = any(${p.ids}::bigint[]) and not exists (select from free where free.id = lease.id)`,
)

/** Removes outcomes of jobs that a worker still holds, as a partial restore leaves them: such a job is about to end, and its outcome replaces them. */
export const removeTwins = statement<{ id: string }>()(
  'outcome.remove_twins',
  (p: { ids: string[] }) => sql`
  delete from holdfast.outcome as twin
  where twin.job_id = any(${p.ids}::uuid[]) and exists (select from ${heldPlace('twin.job_id')} as held)
  returning twin.job_id as id`,
)
