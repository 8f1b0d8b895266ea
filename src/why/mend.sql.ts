import { announceQueue } from '../store/queue-event.sql.ts'
import { legal, raw, sql, statement } from '../store/sql.ts'
import { notify } from '../store/wake.sql.ts'

/** Resumes a queue. No row back: it was not paused. */
export const resumeQueue = statement<{ name: string }>()(
  'queue.resume',
  (p: { name: string; by: string | null }) => sql`
  with changed as (
    update holdfast.queue
    set paused_at = null, paused_by = null, pause_reason = null
    where name = ${p.name} and paused_at is not null
    returning name
  ),
  ${announceQueue(raw(`'queue.resumed'`), p)}
  select name, ${notify('holdfast_wake')} as woken
  from changed`,
)

/** Records that somebody asked for a repair. Before it is made: one that succeeds is never missing in the log. */
export const announceRepair = statement<{ seq: number }>()(
  'why.repair',
  (p: { id: string; tenant: string; repair: string; by: string | null }) => sql`
  insert into holdfast.event (type, tenant, data)
  values ('repair.requested', ${p.tenant}, json_strip_nulls(json_build_object('job', ${p.id}::uuid, 'repair', ${p.repair}::text, 'by', ${p.by}::text)))
  returning seq`,
)

/** Wakes all workers that listen, whether they asked for it or not, if that job waits for one. */
export const wakeFor = statement<{ id: string }>()(
  'why.wake',
  (p: { id: string }) => sql`
  select job.id, ${notify('holdfast_wake')} as woken
  from holdfast.live_job as job
  where job.id = ${p.id}::uuid and ${legal('claim')} and job.run_at <= now()`,
)
