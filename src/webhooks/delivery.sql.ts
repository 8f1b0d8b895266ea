import { raw, sql, statement } from '../postgres/sql.ts'

/**
 * How a request ended, to be written. `released`: it was not completed, and another sender may claim it at once. `unclaimable`: there was none,
 * because the delivery can't be claimed; that is no fault of its endpoint.
 */
export interface Tried {
  id: string
  tries: number
  outcome: 'delivered' | 'retry' | 'permanent' | 'released' | 'unclaimable'
  status: number | null
  error: string | null
  excerpt: string | null
  ms: number | null
  /** The delay before the next request, and the minimum that the receiver asked for. */
  delayMs: number
  leastMs: number
}

/** An endpoint that was disabled. */
export interface SwitchedOff {
  endpoint: string
  tenant: string
  origin: string
  why: string
}

const isRequestFailure = raw(`mine.outcome in ('retry', 'permanent')`)
const isFailure = raw(`mine.outcome in ('retry', 'permanent', 'unclaimable')`)
/** When a delivery is given up. Counted from the first failure, so that a time without senders costs it no retries. */
const endOf = (giveUpMs: number) => sql`coalesce(delivery.failed_at, now()) + ${giveUpMs}::float8 * interval '1 ms'`
const stateOf = (giveUpMs: number) => sql`case when mine.outcome = 'delivered' then 'delivered'
        when mine.outcome = 'permanent' or (mine.outcome in ('retry', 'unclaimable') and now() >= ${endOf(giveUpMs)}) then 'dead'
        else 'pending' end`

/**
 * Whether an endpoint is disabled: the receiver is permanently gone; or a delivery was given up that first failed while the endpoint was already
 * failing, without a success since; or deliveries were refused for so long that one that is retried would be given up.
 */
const isHopeless = (giveUpMs: number) => sql`(coalesce(verdict.is_gone, false) or (not verdict.has_success and (
        coalesce(verdict.given_up_from >= endpoint.failing_since, false)
        or (verdict.is_refused and coalesce(endpoint.failing_since < now() - ${giveUpMs}::float8 * interval '1 ms', false)))))`

/** The outcomes, as rows. */
const outcomes = (tried: Tried[]) => sql`
    select *
    from unnest(
      ${tried.map((one) => one.id)}::uuid[], ${tried.map((one) => one.tries)}::int[], ${tried.map((one) => one.outcome)}::text[],
      ${tried.map((one) => one.status)}::smallint[], ${tried.map((one) => one.error)}::text[], ${tried.map((one) => one.excerpt)}::text[],
      ${tried.map((one) => one.ms)}::int[], ${tried.map((one) => one.delayMs)}::float8[], ${tried.map((one) => one.leastMs)}::float8[]
    ) as mine (id, tries, outcome, status, error, excerpt, ms, delay_ms, least_ms)`

/** Writes the outcomes in `mine`, each if its sender still holds the delivery, or nobody has claimed it. */
const writing = (giveUpMs: number) => sql`
    update holdfast.delivery
    set state = ${stateOf(giveUpMs)},
      ended_at = case when ${stateOf(giveUpMs)} <> 'pending' then now() end,
      next_at = case when mine.outcome = 'released' then now()
        else greatest(least(now() + mine.delay_ms * interval '1 ms', ${endOf(giveUpMs)}), now() + mine.least_ms * interval '1 ms') end,
      -- the backoff of requests: one that was never sent must not delay the next
      failures = delivery.failures + case when ${isRequestFailure} then 1 else 0 end,
      failed_at = case when ${isFailure} then coalesce(delivery.failed_at, now()) else delivery.failed_at end,
      status = case when mine.outcome = 'released' then delivery.status else mine.status end,
      error = case when mine.outcome = 'released' then delivery.error else mine.error end,
      excerpt = case when mine.outcome = 'released' then delivery.excerpt else mine.excerpt end,
      ms = case when mine.outcome = 'released' then delivery.ms else mine.ms end
    from mine
    where delivery.id = mine.id and delivery.tries = mine.tries
      and (delivery.state = 'pending' or (delivery.state = 'dead' and mine.outcome = 'delivered'))
      -- another sender may have postponed it
      and (mine.outcome <> 'unclaimable' or delivery.next_at <= now())
    returning delivery.id, delivery.endpoint_id, delivery.state, delivery.failed_at, mine.outcome, mine.status`

/** What the `written` outcomes say about their endpoints. */
const verdicts = raw(`
    select endpoint_id, bool_or(state = 'delivered') as has_success, bool_or(outcome in ('retry', 'permanent')) as has_failure,
      bool_or(status = 410) as is_gone, bool_or(outcome = 'permanent') as is_refused, max(failed_at) filter (where outcome = 'retry' and state = 'dead') as given_up_from
    from written
    where endpoint_id is not null
    group by endpoint_id`)

/** Notes on each endpoint whether it fails, and disables it if its `verdict` is hopeless. */
const judging = (giveUpMs: number) => sql`
    update holdfast.endpoint
    set failing_since = case when verdict.has_success then null when verdict.has_failure then coalesce(endpoint.failing_since, now())
        else endpoint.failing_since end,
      disabled_at = case when ${isHopeless(giveUpMs)} then now() end,
      disabled_why = case when verdict.is_gone then 'The receiver answered 410: it is permanently gone.'
        when ${isHopeless(giveUpMs)} then format('No delivery has succeeded since %s, and one was given up.',
          to_char(coalesce(endpoint.failing_since, now()) at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS "UTC"')) end
    from verdict
    where endpoint.id = verdict.endpoint_id and endpoint.disabled_at is null
      and ((verdict.has_success and endpoint.failing_since is not null) or (verdict.has_failure and endpoint.failing_since is null) or ${isHopeless(giveUpMs)})
    returning endpoint.id, endpoint.tenant, substring(endpoint.url from '^[a-z]+://[^/?#]+') as origin, endpoint.disabled_at, endpoint.disabled_why`

/**
 * Writes the outcomes of many requests, and judges their endpoints. A success ends the failing of an endpoint. An endpoint is disabled if its
 * receiver is gone, or if a delivery is given up or refused while nothing has succeeded for that long; an event announces it, and its pending
 * deliveries become dead letters. A missing row means that the claim had ended and another sender has the delivery.
 */
export const writeTries = statement<{ id: string; state: string; off: SwitchedOff[] | null }>()(
  'delivery.write',
  (p: { tried: Tried[]; giveUpMs: number }) => sql`
  with mine as materialized (${outcomes(p.tried)}),
  written as (${writing(p.giveUpMs)}),
  verdict as materialized (${verdicts}),
  judged as (${judging(p.giveUpMs)}),
  off as materialized (
    select *
    from judged
    where disabled_at is not null
  ),
  waiting as materialized (
    select delivery.id
    from holdfast.delivery
    where (delivery.tenant, delivery.lane) in (select tenant, id::text from off) and delivery.state = 'pending'
      and delivery.id not in (select id from mine)
    for update skip locked
  ),
  dropped as (
    update holdfast.delivery
    set state = 'dead', ended_at = now(), error = 'The endpoint was disabled. ' || off.disabled_why
    from off
    where delivery.id in (select id from waiting) and delivery.endpoint_id = off.id and delivery.state = 'pending'
  ),
  announced as (
    insert into holdfast.event_log (type, tenant, data)
    select 'webhook.disabled', tenant, json_build_object('endpoint', id, 'origin', origin, 'why', disabled_why)
    from off
  )
  select id, state, (
    select json_agg(json_build_object('endpoint', off.id, 'tenant', off.tenant, 'origin', off.origin, 'why', off.disabled_why)) from off
  ) as off
  from written`,
)
