import { suspectCrashes } from '../job/define.ts'
import { legal, sql, statement } from '../store/sql.ts'

/** Makes a job look as if it had lost several workers. */
export const suspectByHand = statement<{ id: string }>()(
  'prove.suspect',
  (p: { id: string }) => sql`
  update holdfast.live_job as job
  set crashes = ${suspectCrashes}
  where job.id = ${p.id} and ${legal('claim')}
  returning job.id`,
)
