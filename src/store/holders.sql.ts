import { sql } from './sql.ts'

/** The sessions that hold attempts, from one to the next by the index, however many attempts each holds. For a `with recursive`. */
export const holders = sql`holder (session_id) as (
    (select job.session_id from holdfast.live_job as job where job.session_id is not null order by job.session_id limit 1)
    union all
    select (
      select job.session_id
      from holdfast.live_job as job
      where job.session_id is not null and job.session_id > holder.session_id
      order by job.session_id
      limit 1
    )
    from holder
    where holder.session_id is not null
  )`
