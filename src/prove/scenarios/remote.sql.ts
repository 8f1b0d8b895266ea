import { suspectCrashes } from '../../job/define.ts'
import { sql, statement } from '../../postgres/sql.ts'

/** Makes a queued job a suspect, as if it had lost workers before. */
export const suspectByHand = statement<{ id: string }>()(
  'prove.suspect',
  (p: { id: string }) => sql`
  update holdfast.ready
  set crashes = ${suspectCrashes}
  where job_id = ${p.id}
  returning job_id as id`,
)
