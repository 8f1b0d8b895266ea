import { raw, sql, statement } from '../postgres/sql.ts'
import { announceQueue } from '../transitions/queue-event.sql.ts'
import { notify } from '../transitions/wake.sql.ts'

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

/** Records that a repair was requested. Written before it is made, so that no successful repair is missing in the log. */
export const announceRepair = statement<{ seq: number }>()(
  'why.repair',
  (p: { id: string; tenant: string; repair: string; by: string | null }) => sql`
  insert into holdfast.event_log (type, tenant, data)
  values ('repair.requested', ${p.tenant}, json_strip_nulls(json_build_object('job', ${p.id}::uuid, 'repair', ${p.repair}::text, 'by', ${p.by}::text)))
  returning seq`,
)

/** Wakes all workers that listen, whether or not they asked for it, if that job is due. */
export const wakeFor = statement<{ id: string }>()(
  'why.wake',
  (p: { id: string }) => sql`
  select job_id as id, ${notify('holdfast_wake')} as woken
  from holdfast.ready
  where job_id = ${p.id}::uuid and run_at <= now()`,
)
