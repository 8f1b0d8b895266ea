import { sql, statement } from '../store/sql.ts'
import { notify } from '../store/wake.sql.ts'

/** Resumes a queue. No row back: it was not paused. */
export const resumeQueue = statement<{ name: string }>()(
  'queue.resume',
  (p: { name: string }) => sql`
  update holdfast.queue
  set paused_at = null, paused_by = null, pause_reason = null
  where name = ${p.name} and paused_at is not null
  returning name, ${notify('holdfast_wake')} as woken`,
)

/** Wakes all workers that listen, whether they asked for it or not, if that job waits for one. */
export const wakeFor = statement<{ id: string }>()(
  'why.wake',
  (p: { id: string }) => sql`
  select job_id as id, ${notify('holdfast_wake')} as woken
  from holdfast.ready
  where job_id = ${p.id}::uuid and run_at <= now()`,
)
