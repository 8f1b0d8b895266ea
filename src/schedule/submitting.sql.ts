import { smallBytes, tinyBytes } from '../job/stored.ts'
import { raw, type Sql, sql } from '../postgres/sql.ts'

/**
 * The id of the job of a slot: a UUID of version 7 with the time of the slot; the rest is derived from tenant, name and slot. Whoever submits
 * a slot a second time finds that its job exists.
 */
export function slotId(schedule: string, slot: string): Sql {
  const ms = `(extract(epoch from ${slot}) * 1000)::bigint`
  const hash = `left(encode(sha256(convert_to(${schedule}.tenant || '/' || ${schedule}.name || '/' || ${ms}, 'UTF8')), 'hex'), 32)`
  return raw(
    `overlay(overlay(overlay(${hash} placing lpad(to_hex(${ms}), 12, '0') from 1) placing '7' from 13) placing '8' from 17)::uuid`,
  )
}

/** When the job of a slot may run: at the slot, or up to the jitter later. The delay is derived from the id, so it doesn't depend on who submits. */
export function runAt(schedule: string, slot: string, id: string): Sql {
  const delay = `(('x' || right(${id}::text, 12))::bit(48)::bigint % (${schedule}.jitter_ms + 1)) * interval '1 ms'`
  return raw(`case when ${schedule}.jitter_ms > 0 then ${slot} + ${delay} else ${slot} end`)
}

/**
 * Whether a slot waits for an earlier job, and whether jobs are to be cancelled. Ranges, because a planner without statistics expects few rows
 * in them, and otherwise would read all schedules.
 */
export const isBuffered = raw(
  `schedule.buffered_at > '-infinity' and schedule.buffered_at < 'infinity' and schedule.paused_at is null`,
)
export const hasCancels = raw(
  `schedule.cancel_job_ids <> '{}' and cardinality(schedule.cancel_job_ids) > 0 and cardinality(schedule.cancel_job_ids) < 2147483647`,
)

/** Whether the job of the last slot has not ended. A job that retention removed had ended. */
export function isLastLive(schedule: string): Sql {
  return raw(`(${schedule}.last_job_id is not null and exists (select from holdfast.job where job.id = ${schedule}.last_job_id)
      and not exists (select from holdfast.outcome where outcome.job_id = ${schedule}.last_job_id))`)
}

/**
 * Submits the jobs of schedules, as CTEs; `submitted` has their ids. `source` has the columns of the schedules, and job_id and run_at. Queue,
 * priority and crash budget are those of the kind as it is registered now, because a deploy may have moved it to another queue.
 */
export function submitting(source: string): Sql {
  return sql`wanted as materialized (
    select source.job_id, source.tenant, source.kind, source.input::text as input, octet_length(source.input::text) as bytes, source.run_at,
      coalesce(registered.queue, source.queue) as queue, coalesce(source.priority, registered.priority, source.kind_priority) as priority,
      coalesce(registered.crash_budget, source.crash_budget) as crash_budget
    from ${raw(source)} as source
    left join lateral (
      select kind.queue, kind.priority, kind.crash_budget
      from holdfast.kind
      where kind.name = source.kind and kind.tenant in ('', source.tenant)
      order by kind.tenant
      limit 1
    ) as registered on true
    where source.job_id is not null
  ),
  submitted as (
    insert into holdfast.job (id, kind, queue, tenant, priority, crash_budget, submitted_at, input)
    select job_id, kind, queue, tenant, priority, crash_budget, now(), case when bytes <= ${smallBytes}::int then input::json end
    from wanted
    on conflict (id) do nothing
    returning id
  ),
  queued as (
    insert into holdfast.ready (job_id, run_at, kind, queue, tenant, priority, crash_budget, submitted_at, input)
    select wanted.job_id, greatest(now(), wanted.run_at), wanted.kind, wanted.queue, wanted.tenant, wanted.priority, wanted.crash_budget,
      case when wanted.bytes <= ${tinyBytes}::int then now() end, case when wanted.bytes <= ${tinyBytes}::int then wanted.input end
    from wanted
    join submitted on submitted.id = wanted.job_id
  ),
  payload as (
    insert into holdfast.job_payload (job_id, input)
    select wanted.job_id, wanted.input::json
    from wanted
    join submitted on submitted.id = wanted.job_id
    where wanted.bytes > ${smallBytes}::int
  )`
}
