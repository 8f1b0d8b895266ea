import { type CursorFence, type CursorMove, movingCursor } from '../events/group.sql.ts'
import { unparking } from '../events/parked.sql.ts'
import { finalStates } from '../job/machine.ts'
import { eventOf, raw, type Sql, sql, stateList, statement } from '../postgres/sql.ts'
import { ofKind } from '../transitions/kind.sql.ts'
import { notify } from '../transitions/wake.sql.ts'
import { isWantedBy } from '../transitions/wanted-events.sql.ts'

/** What to plan at once: the events between two positions. */
export interface PlanParams {
  from: number
  seq: number
  /** The maximum size of a body. A result that does not fit is replaced by a link. */
  maxBytes: number
  publicUrl: string | null
  /** Leaves out what may be unreadable: the data of events, results, and what was submitted with jobs. */
  isBare?: boolean
}

/** The error of a delivery that is dead before it was ever sent. */
export const switchedOff = 'The endpoint is disabled.'

const timeOf = (column: string) => raw(`to_char(${column} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`)

/** Stable, and unique across all databases. The number of the event is hashed: otherwise it would tell a receiver how active other tenants are. */
const eventId = raw(`'evt_' || replace(coalesce(news.job_id::text, ''), '-', '') || '_' ||
      left(encode(sha256(coalesce((select secret from holdfast.server_secret), '') || int8send(news.seq)), 'hex'), 20)`)

/** Without the stack, which is none of the receiver's business. */
const errorIn = (data: string) => raw(`json_build_object('code', ${data} -> 'code', 'message', ${data} -> 'message')`)

const job = sql`case when one.job_id is not null then json_build_object(
        'id', one.job_id, 'kind', one.kind, 'queue', job.queue, 'isItem', job.is_item, 'parent', job.parent, 'state', one.state,
        'stage', json_build_object('number', one.stage, 'name', coalesce(output.name, kind.stages -> one.stage::int ->> 'name')),
        'attempt', one.attempt, 'submittedAt', ${timeOf('job.submitted_at')},
        'finishedAt', case when one.state in (${stateList(finalStates)}) then ${timeOf('one.at')} end, 'meta', payload.meta
      ) end`

const isBare = (p: PlanParams) => sql`${p.isBare === true}::boolean`
const hasResult = sql`one.type in (${eventOf('advance')}, ${eventOf('finish')})`

const error = (p: PlanParams) => sql`case when ${isBare(p)} then null
        when one.type = ${eventOf('fail')} then ${errorIn('one.data')}
        when one.type in (${eventOf('retry')}, ${eventOf('quarantine')}) then ${errorIn("(one.data -> 'error')")} end`

const details = (p: PlanParams) => sql`case when ${isBare(p)} or one.type = ${eventOf('fail')} then null
        when one.type = ${eventOf('retry')} then json_build_object('runAt', one.data -> 'runAt')
        when one.type = ${eventOf('quarantine')} then
          json_build_object('rung', one.data -> 'rung', 'lostMs', one.data -> 'lostMs', 'crashes', one.data -> 'crashes')
        else one.data end`

const dataWith = (p: PlanParams, omitted: Sql) => sql`json_build_object('job', ${job}, 'tenant', one.tenant,
      'result', case when not output.is_omitted then output.output end${omitted}, 'error', ${error(p)}, 'details', ${details(p)})`

const data = (
  p: PlanParams,
) => sql`case when output.is_omitted then ${dataWith(p, sql`, 'resultOmitted', output.omitted`)}
      when ${isBare(p)} and ${hasResult} then ${dataWith(p, sql`, 'resultOmitted', ${unread(p)}`)}
      else ${dataWith(p, raw(''))} end`

/** A CloudEvent. */
const bodyWith = (
  p: PlanParams,
  trace: Sql,
) => sql`json_build_object('specversion', '1.0', 'id', one.event_id, 'source', '/holdfast', 'type', one.type,
      'subject', one.job_id, 'time', ${timeOf('one.at')}, 'datacontenttype', 'application/json'${trace}, 'data', ${data(p)})::text`

const body = (p: PlanParams) =>
  sql`case when payload.trace is null then ${bodyWith(p, raw(''))} else ${bodyWith(p, sql`, 'traceparent', payload.trace`)} end`

const link = (p: PlanParams) => sql`coalesce(${p.publicUrl}::text || '/v1/jobs/' || one.job_id || '/result',
          format('Read the result with hf.get(''%s''), or with: holdfast show %s', one.job_id, one.job_id))`

const omitted = (p: PlanParams) => sql`json_build_object('bytes', octet_length(kept.output::text),
        'reason', format('The body of a webhook may have at most %s bytes (setting webhookMaxBytes).', ${p.maxBytes}::bigint),
        'link', ${link(p)})`

function unread(p: PlanParams): Sql {
  const reason = 'The database failed to read the result, or something else that belongs to the event.'
  return sql`json_build_object('bytes', null, 'reason', ${reason}::text, 'link', ${link(p)})`
}

/** The `news` that are wanted, once for each endpoint and job webhook. */
const wantedNews = sql`
    select news.*, ${eventId} as event_id, endpoint.id as endpoint_id, endpoint.id::text as lane, endpoint.disabled_at is not null as is_off
    from news
    join holdfast.endpoint on news.seq > endpoint.since_seq and ${isWantedBy('endpoint', 'news')}
    union all
    select news.*, ${eventId}, null, hook.origin, false
    from news
    cross join lateral (
      select origin
      from holdfast.job_webhook
      where job_id = news.job_id and news.type = any(types)
      limit 1
    ) as hook`

/** The body of each event in `one`. */
const bodies = (p: PlanParams) => sql`
    select one.seq, ${body(p)} as body
    from one
    left join lateral (
      select own.queue, own.submitted_at, own.barrier_id is not null as is_item,
        (select barrier.job_id from holdfast.barrier where barrier.id = own.barrier_id) as parent
      from holdfast.job as own
      where own.id = one.job_id
      limit 1
    ) as job on true
    left join lateral (
      select kept.trace, case when octet_length(kept.meta::text) <= ${p.maxBytes}::bigint then kept.meta end as meta
      from holdfast.job_payload as kept
      where kept.job_id = one.job_id and not ${isBare(p)}
      limit 1
    ) as payload on true
    left join lateral (
      select kept.name, kept.output, ${omitted(p)} as omitted,
        octet_length(kept.output::text) + coalesce(octet_length(payload.meta::text), 0) > ${p.maxBytes}::bigint - 1000 as is_omitted
      from holdfast.stage_output as kept
      where kept.job_id = one.job_id and kept.stage = one.stage and kept.attempt = one.attempt
        and ${hasResult} and not ${isBare(p)}
      limit 1
    ) as output on true
    cross join lateral (select case when not ${isBare(p)} then ${ofKind('stages', 'one')} end as stages) as kind`

/** Plans the deliveries of a part of the log, if `mine` has a row. */
const planning = (p: PlanParams, mine: Sql) => sql`
  with mine as materialized (${mine}),
  news as materialized (
    select event.seq, event.at, event.type, event.state, event.job_id, event.kind, event.tenant, event.attempt, event.stage,
      case when not ${isBare(p)} then event.data end as data
    from holdfast.event
    where event.seq > ${p.from}::bigint and event.seq <= ${p.seq}::bigint
  ),
  wanted as materialized (${wantedNews}),
  one as materialized (
    select distinct on (seq) *
    from wanted
    order by seq
  ),
  told as materialized (${bodies(p)}),
  planned as (
    insert into holdfast.delivery (event_seq, event_id, type, tenant, job_id, endpoint_id, lane, state, body, error, ended_at)
    select wanted.seq, wanted.event_id, wanted.type, wanted.tenant, wanted.job_id, wanted.endpoint_id, wanted.lane,
      case when wanted.is_off then 'dead' else 'pending' end, told.body,
      case when wanted.is_off then ${switchedOff}::text end, case when wanted.is_off then now() end
    from wanted
    join told on told.seq = wanted.seq
    cross join mine
    order by wanted.seq
    on conflict do nothing
    returning state
  )
  select mine.seq, made.planned, case when made.planned > 0 then ${notify('holdfast_event')} end as woken
  from mine
  cross join (select count(*) as planned from planned where state = 'pending') as made`

/**
 * Plans the deliveries of a part of the log and moves the cursor past it, in one statement, so that each is planned exactly once. The body is
 * made here and sent unchanged, so all requests send the same bytes. No row back: another reader has the cursor.
 */
export const planDeliveries = statement<{ seq: number; planned: number }>()(
  'delivery.plan',
  (p: PlanParams & CursorMove) => planning(p, movingCursor(p)),
)

/** Plans the deliveries of a parked event, and unparks it in the same statement. No row back: its event is gone, or another reader has the cursor. */
export const planParked = statement<{ seq: number; planned: number }>()(
  'delivery.plan_parked',
  (p: PlanParams & CursorFence) =>
    planning(p, unparking(p, sql`exists (select from holdfast.event where event.seq = ${p.seq}::bigint)`)),
)
