import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { type Asked, factsOf, lastEvents } from '../transitions/facts.sql.ts'
import { bulkOf } from './bulk.sql.ts'
import { continues, isContinuation } from './continuation.sql.ts'
import { deliveries, groups, oldestWriter } from './deliveries.sql.ts'
import type { Facts } from './facts.ts'
import { ledger, stragglers } from './fan-out.sql.ts'
import { oldestSnapshot } from './old-snapshot.sql.ts'
import { ahead } from './queue-position.sql.ts'
import { isLocked, unresponsive, vitals, workers } from './workers.sql.ts'

/** A snapshot that a settle kept. */
export interface SnapshotRow {
  at: string
  attempt: number
  event: string
  /** Only `trouble`, the reason, if they could not be read. */
  facts: Facts | { trouble: string }
}

const mostEvents = 10

/** The names of the stages of the row `kind`, and, if it is a rule for all tenants, the queue that the rule of the job's tenant names. */
const stages = raw(`, 'names', (
          select json_agg(stage ->> 'name' order by place) from json_array_elements(kind.stages) with ordinality as stages (stage, place)
        ), 'ownQueue', case when kind.tenant = '' then (
          select own.queue from holdfast.kind as own where own.tenant = job.tenant and own.name = job.kind
        ) end`)

const pause = (name: string, column: string) =>
  `, '${name}', (select queue.${column} from holdfast.queue where queue.name = job.queue and queue.paused_at is not null)`

/** The slot that it was submitted for, and what its schedule waits for. */
const scheduled = (id: Sql) => sql`(
      select json_build_object('schedule', slot.name, 'slotAt', slot.slot_at, 'what', slot.what, 'decidedAt', slot.decided_at, 'by', slot.by,
        'nextAt', schedule.next_at, 'bufferedAt', schedule.buffered_at, 'pausedAt', schedule.paused_at, 'missed', schedule.missed,
        'problem', schedule.problem, 'isLast', schedule.last_job_id = slot.job_id, 'isReplaced', slot.job_id = any(schedule.cancel_job_ids))
      from holdfast.schedule_slot as slot
      left join holdfast.schedule on schedule.tenant = slot.tenant and schedule.name = slot.name
      where slot.job_id = ${id}
      limit 1
    )`

/** What a snapshot omits. */
function asked(id: Sql): Asked {
  return {
    events: mostEvents,
    kind: stages,
    queue: raw(`${pause('pausedBy', 'paused_by')}${pause('reason', 'pause_reason')}`),
    session: vitals,
    sessionId: sql`coalesce(job.session_id, (
        select last.session_id from ${lastEvents(id, mostEvents)} where last.session_id is not null order by last.seq desc limit 1
      ))`,
    isLocked,
    looksForItems: raw('true'),
    ledger,
    stragglers,
    workers,
    ahead,
    continues: continues(id),
    groups: groups(id),
    deliveries: deliveries(id),
    oldestWriter,
    oldestSnapshot: sql`case when job.id is not null then ${oldestSnapshot} end`,
    more: sql`, 'unresponsive', ${unresponsive(id)}, 'scheduled', ${scheduled(id)}, 'bulk', ${bulkOf(id, mostEvents)}`,
  }
}

/**
 * What every source says about a job, with its last snapshots. No row: no source knows it. All of it is seen at one moment, since it is one
 * statement. Its times are in UTC: JSON is written in the time zone of the session, which is set before the first of them is written.
 */
export const factsAbout = statement<{ facts: Facts; snapshots: SnapshotRow[] }>()(
  'why.facts',
  (p: { id: string; shown: number }) => {
    const id = sql`${p.id}::uuid`
    return sql`
  with job as materialized (
    select status.*
    from holdfast.job_status as status
    where status.id = ${id}
  )
  select ${factsOf(id, asked(id))} as facts, coalesce((
      select json_agg(json_build_object('at', last.at, 'attempt', last.attempt, 'event', last.event, 'facts', last.facts) order by last.attempt)
      from (
        select *
        from holdfast.snapshot
        where snapshot.job_id = ${id}
        order by snapshot.attempt desc
        limit ${p.shown}
      ) as last
    ), '[]') as snapshots
  from (select set_config('timezone', 'UTC', true)) as utc
  left join job on true
  where job.id is not null or ${isContinuation(id)}`
  },
)

/** Removes old snapshots. */
export const forgetSnapshots = statement<{ job_id: string }>()(
  'snapshot.forget',
  (p: { olderThanMs: number; limit: number }) => sql`
  delete from holdfast.snapshot
  where (job_id, attempt) in (
    select job_id, attempt
    from holdfast.snapshot
    where at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
    order by at
    limit ${p.limit}
  ) and at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
  returning job_id`,
)
