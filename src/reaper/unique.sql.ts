import { raw, sql, statement } from '../postgres/sql.ts'
import { isLive } from '../transitions/leases.sql.ts'

const isHeld = raw(
  `exists (select from unnest(due.job_id || due.earlier) as one (id) where ${isLive('one.id').texts[0]})`,
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
  live as (
    update holdfast.unique_job as own
    set until = null
    where own.ctid = any(array(select due.place from due where ${isHeld}))
    returning own.key
  ),
  gone as (
    delete from holdfast.unique_job as own
    where own.ctid = any(array(select due.place from due where not ${isHeld}))
    returning own.key
  )
  select key from live
  union all
  select key from gone`,
)
