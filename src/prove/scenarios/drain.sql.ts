import { suspectCrashes } from '../../job/define.ts'
import { raw, sql, statement } from '../../postgres/sql.ts'

/** Makes a job that waits for its retry a suspect, as if it had lost workers before. */
export const suspectByHand = statement<{ id: string }>()(
  'prove.suspect',
  (p: { id: string }) => sql`
  update holdfast.ready as job
  set crashes = ${raw(String(suspectCrashes))}
  where job.job_id = ${p.id}::uuid and job.attempt > 0
  returning job.job_id as id`,
)
