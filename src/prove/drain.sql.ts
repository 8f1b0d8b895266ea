import { suspectCrashes } from '../job/define.ts'
import { legal, raw, sql, statement } from '../store/sql.ts'

/** Makes a job a suspect that rests after its first failure: as if it had lost workers before. */
export const suspectByHand = statement<{ id: string }>()(
  'prove.suspect',
  (p: { id: string }) => sql`
  update holdfast.live_job as job
  set crashes = ${raw(String(suspectCrashes))}
  where job.id = ${p.id}::uuid and job.attempt > 0 and ${legal('claim')}
  returning job.id`,
)
