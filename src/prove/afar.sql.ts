import { suspectCrashes } from '../job/define.ts'
import { sql, statement } from '../store/sql.ts'

/** Makes a job look as if it had lost several workers. */
export const suspectByHand = statement<{ id: string }>()(
  'prove.suspect',
  (p: { id: string }) => sql`
  update holdfast.ready
  set crashes = ${suspectCrashes}
  where job_id = ${p.id}
  returning job_id as id`,
)
