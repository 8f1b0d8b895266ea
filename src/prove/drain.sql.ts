import { suspectCrashes } from '../job/define.ts'
import { legal, raw, sql, statement } from '../store/sql.ts'

const crashes = raw(String(suspectCrashes))

/** Makes one of the jobs that wait a suspect, unless there is one: as if it had lost workers before. */
export const suspectByHand = statement<{ id: string }>()(
  'prove.suspect',
  () => sql`
  update holdfast.live_job
  set crashes = ${crashes}
  where id = (
    select job.id
    from holdfast.live_job as job
    where ${legal('claim')} and job.run_at <= now()
      and not exists (select from holdfast.live_job as other where other.crashes >= ${crashes})
    order by job.run_at desc
    limit 1
    for update skip locked
  )
  returning id`,
)
