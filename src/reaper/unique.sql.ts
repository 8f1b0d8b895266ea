import { raw, sql, statement } from '../postgres/sql.ts'
import { isLive } from '../transitions/leases.sql.ts'

const alive = raw(
  `array(select one.id from unnest(due.job_id || due.earlier) as one (id) where ${isLive('one.id').texts[0]})`,
)

/** Removes unique keys whose window is over and whose jobs have ended. Those of live jobs go with their jobs. */
export const forgetUniqueKeys = statement<{ key: string }>()(
  'unique_job.forget',
  (p: { limit: number }) => sql`
  with due as materialized (
    select own.ctid as place, own.job_id, own.earlier
    from holdfast.unique_job as own
    where own.until <= now()
    order by own.until
    limit ${p.limit}
    for update skip locked
  ),
  asked as materialized (
    select due.place, ${alive} as alive
    from due
  ),
  live as (
    -- the last job may be gone, and an earlier one still live
    update holdfast.unique_job as own
    set until = null, job_id = asked.alive[1], earlier = asked.alive[2:]
    from asked
    where own.ctid = asked.place and cardinality(asked.alive) > 0
    returning own.key
  ),
  gone as (
    delete from holdfast.unique_job as own
    where own.ctid = any(array(select asked.place from asked where cardinality(asked.alive) = 0))
    returning own.key
  )
  select key from live
  union all
  select key from gone`,
)
