import { raw, type Sql, sql, statement } from '../store/sql.ts'

/** A delivery that this process may send until its claim ends. */
export interface ClaimedDelivery {
  id: string
  /** The fence: whoever holds a lower number was overtaken. */
  tries: number
  failures: number
  event_id: string
  type: string
  tenant: string
  job_id: string | null
  lane: string
  body: string
  endpoint_id: string | null
  /** Null if the endpoint, or the webhook of the job, is gone. */
  url: string | null
  headers: Record<string, string> | null
  secret: string | null
  old_secret: string | null
  trace: string | null
  is_off: boolean
  /** The database's time at the claim, in milliseconds since 1970. */
  now_ms: number
}

/**
 * How much may be claimed: in all, of each tenant, and of each lane. Tenants and lanes that are not listed get what is said for others. They
 * are listed by when they had their last turn, and those who waited longest come first.
 */
export interface ClaimRoom {
  limit: number
  tenantMost: number
  /** In the slow lanes of a tenant together. */
  tenantSlowMost: number
  tenants: string[]
  tenantMosts: number[]
  tenantSlowMosts: number[]
  most: number
  laneTenants: string[]
  lanes: string[]
  mosts: number[]
  slows: boolean[]
}

/** Behind which lane the walk goes on, for tenants that have more lanes than one walk looks at. */
export interface ClaimCursors {
  cursorTenants: string[]
  cursors: string[]
}

/** How many lanes of one tenant a claim looks at. Jobs can name a receiver each, so a tenant can have any number of lanes. */
const lanesAtOnce = 250

/** From tenant to tenant along the index, so that the cost is their number, however many deliveries each has. */
const tenants = sql`
    (
      select delivery.tenant
      from holdfast.delivery
      where delivery.state = 'pending'
      order by delivery.tenant, delivery.lane, delivery.next_at
      limit 1
    )
    union all
    select next.tenant
    from tenant
    cross join lateral (
      select delivery.tenant
      from holdfast.delivery
      where delivery.state = 'pending' and delivery.tenant > tenant.tenant
      order by delivery.tenant, delivery.lane, delivery.next_at
      limit 1
    ) as next`

const firstAfter = (after: string) =>
  raw(`select delivery.lane, delivery.next_at
          from holdfast.delivery
          where delivery.state = 'pending' and delivery.tenant = open.tenant and delivery.lane > ${after}
          order by delivery.lane, delivery.next_at
          limit 1`)

/** From lane to lane of a tenant along the index, up to so many. */
const lanesOf = (most: number) => sql`
      with recursive hop (lane, next_at, number) as (
        select first.lane, first.next_at, 1
        from (${firstAfter('open.cursor')}) as first
        union all
        select next.lane, next.next_at, hop.number + 1
        from hop
        cross join lateral (${firstAfter('hop.lane')}) as next
        where hop.number < ${most}::int
      )
      select lane, next_at
      from hop`

/** What is due in the lanes of a tenant that are slow, or in those that are not. */
const dueIn = (isSlow: boolean, limit: Sql) => sql`
        (
          select due.id
          from (
            select *
            from room
            where room.tenant = sharing.tenant and ${raw(isSlow ? 'room.is_slow' : 'not room.is_slow')}
            order by room.place nulls first, room.lane
          ) as room
          cross join lateral (
            select delivery.id
            from holdfast.delivery
            where delivery.state = 'pending' and delivery.tenant = room.tenant and delivery.lane = room.lane and delivery.next_at <= now()
            order by delivery.next_at
            limit room.most
            for update skip locked
          ) as due
          limit ${limit}
        )`

/**
 * Claims what is due: of each tenant an equal share of the whole, and of each lane as much as it has room for. A sender that dies leaves
 * rows that come due by themselves. What is locked is not guarded a second time: the guard is the predicate of an index, and the update
 * would walk all of it. Answers one row more, without an id, with the tenants that have further lanes, and the last lane that was looked at.
 */
export const claimDeliveries = statement<ClaimedDelivery | { id: null; further: Record<string, string> | null }>()(
  'delivery.claim',
  (p: ClaimRoom & ClaimCursors & { claimMs: number }) => sql`
  with recursive tenant (tenant) as (${tenants}),
  open as materialized (
    select tenant.tenant, coalesce(known.most, ${p.tenantMost}::int) as most, coalesce(known.slow_most, ${p.tenantSlowMost}::int) as slow_most,
      known.place, coalesce(walked.cursor, '') as cursor
    from tenant
    left join unnest(${p.tenants}::text[], ${p.tenantMosts}::int[], ${p.tenantSlowMosts}::int[])
      with ordinality as known (tenant, most, slow_most, place) on known.tenant = tenant.tenant
    left join unnest(${p.cursorTenants}::text[], ${p.cursors}::text[]) as walked (tenant, cursor) on walked.tenant = tenant.tenant
    where coalesce(known.most, ${p.tenantMost}::int) > 0
  ),
  lane as materialized (
    select open.tenant, hop.lane, hop.next_at
    from open
    cross join lateral (${lanesOf(lanesAtOnce)}) as hop
  ),
  room as materialized (
    select lane.tenant, lane.lane, coalesce(known.most, ${p.most}::int) as most, coalesce(known.is_slow, true) as is_slow, known.place
    from lane
    left join unnest(${p.laneTenants}::text[], ${p.lanes}::text[], ${p.mosts}::int[], ${p.slows}::boolean[])
      with ordinality as known (tenant, lane, most, is_slow, place) on known.tenant = lane.tenant and known.lane = lane.lane
    where lane.next_at <= now() and coalesce(known.most, ${p.most}::int) > 0
  ),
  sharing as materialized (
    select open.tenant, open.place, open.slow_most, least(open.most, ceil(${p.limit}::float8 / count(*) over ())) as most
    from open
    where open.tenant in (select room.tenant from room)
  ),
  due as materialized (
    select own.id
    from (
      select *
      from sharing
      order by sharing.place nulls first, sharing.tenant
    ) as sharing
    cross join lateral (
      select id
      from (${dueIn(false, raw('sharing.most'))} union all ${dueIn(true, raw('sharing.slow_most'))}) as both_kinds
      limit sharing.most
    ) as own
    limit ${p.limit}
  ),
  claimed as (
    update holdfast.delivery
    set next_at = now() + ${p.claimMs}::float8 * interval '1 ms', claimed_at = now(), tries = delivery.tries + 1
    where delivery.id = any(array(select id from due))
    returning delivery.*
  )
  select claimed.id, claimed.tries, claimed.failures, claimed.event_id, claimed.type, claimed.tenant, claimed.job_id, claimed.lane, claimed.body,
    claimed.endpoint_id, coalesce(endpoint.url, hook.url) as url, coalesce(endpoint.headers, hook.headers) as headers,
    coalesce(endpoint.secret, hook.secret) as secret, case when endpoint.old_secret_until > now() then endpoint.old_secret end as old_secret,
    payload.trace, endpoint.disabled_at is not null as is_off, (date_part('epoch', now()) * 1000)::float8 as now_ms, null::json as further
  from claimed
  left join holdfast.endpoint on endpoint.id = claimed.endpoint_id
  left join lateral (
    select * from holdfast.job_webhook where job_id = claimed.job_id and claimed.endpoint_id is null limit 1
  ) as hook on true
  left join lateral (select trace from holdfast.job_payload where job_id = claimed.job_id limit 1) as payload on true
  union all
  select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, (
    select json_object_agg(cut.tenant, cut.cursor)
    from (
      select lane.tenant, max(lane.lane) as cursor from lane group by lane.tenant having count(*) >= ${lanesAtOnce}::int
    ) as cut
  )`,
)

/** How long the oldest delivery has been due: the first of each lane, from lane to lane along the index. */
export const oldestDue = statement<{ late_ms: number }>()(
  'delivery.oldest',
  () => sql`
  with recursive lane (tenant, lane, next_at) as (
    (
      select delivery.tenant, delivery.lane, delivery.next_at
      from holdfast.delivery
      where delivery.state = 'pending'
      order by delivery.tenant, delivery.lane, delivery.next_at
      limit 1
    )
    union all
    select next.tenant, next.lane, next.next_at
    from lane
    cross join lateral (
      select delivery.tenant, delivery.lane, delivery.next_at
      from holdfast.delivery
      where delivery.state = 'pending' and (delivery.tenant, delivery.lane) > (lane.tenant, lane.lane)
      order by delivery.tenant, delivery.lane, delivery.next_at
      limit 1
    ) as next
  )
  select greatest(0, extract(epoch from now() - min(next_at)) * 1000)::float8 as late_ms
  from lane`,
)

/** How a try ended, to be written. `released`: it was not tried to the end, and somebody else may at once. */
export interface Tried {
  id: string
  tries: number
  outcome: 'delivered' | 'retry' | 'permanent' | 'released'
  status: number | null
  error: string | null
  excerpt: string | null
  ms: number | null
  /** The wait before the next try, and how long the receiver asked us to wait at least. */
  delayMs: number
  leastMs: number
}

/** An endpoint that was switched off. */
export interface SwitchedOff {
  endpoint: string
  tenant: string
  origin: string
  why: string
}

const isFailure = raw(`mine.outcome in ('retry', 'permanent')`)
/** Counted from the first failure: after a time without any sender, it still gets all its tries. */
const endOf = (giveUpMs: number) => sql`coalesce(delivery.failed_at, now()) + ${giveUpMs}::float8 * interval '1 ms'`
const stateOf = (giveUpMs: number) => sql`case when mine.outcome = 'delivered' then 'delivered'
        when mine.outcome = 'permanent' or (mine.outcome = 'retry' and now() >= ${endOf(giveUpMs)}) then 'dead'
        else 'pending' end`

/**
 * Gone for good; or given up: a delivery first failed when the endpoint was failing already, and was never followed by a success; or
 * refused for so long that a delivery which is tried again would be given up.
 */
const isHopeless = (giveUpMs: number) => sql`(coalesce(verdict.is_gone, false) or (not verdict.has_success and (
        coalesce(verdict.given_up_from >= endpoint.failing_since, false)
        or (verdict.is_refused and coalesce(endpoint.failing_since < now() - ${giveUpMs}::float8 * interval '1 ms', false)))))`

/**
 * Writes how tries ended, many at a time, and judges their endpoints: a success clears the failing, and one that is gone, or of which a
 * delivery is given up or refused while nothing has succeeded for that long, is switched off, with its event, and what waits for it dies.
 * A missing row means that the claim had ended and another sender has it.
 */
export const writeTries = statement<{ id: string; state: string; off: SwitchedOff[] | null }>()(
  'delivery.write',
  (p: { tried: Tried[]; giveUpMs: number }) => sql`
  with mine as materialized (
    select *
    from unnest(
      ${p.tried.map((one) => one.id)}::uuid[], ${p.tried.map((one) => one.tries)}::int[], ${p.tried.map((one) => one.outcome)}::text[],
      ${p.tried.map((one) => one.status)}::smallint[], ${p.tried.map((one) => one.error)}::text[], ${p.tried.map((one) => one.excerpt)}::text[],
      ${p.tried.map((one) => one.ms)}::int[], ${p.tried.map((one) => one.delayMs)}::float8[], ${p.tried.map((one) => one.leastMs)}::float8[]
    ) as mine (id, tries, outcome, status, error, excerpt, ms, delay_ms, least_ms)
  ),
  written as (
    update holdfast.delivery
    set state = ${stateOf(p.giveUpMs)},
      ended_at = case when ${stateOf(p.giveUpMs)} <> 'pending' then now() end,
      next_at = case when mine.outcome = 'released' then now()
        else greatest(least(now() + mine.delay_ms * interval '1 ms', ${endOf(p.giveUpMs)}), now() + mine.least_ms * interval '1 ms') end,
      failures = delivery.failures + case when ${isFailure} then 1 else 0 end,
      failed_at = case when ${isFailure} then coalesce(delivery.failed_at, now()) else delivery.failed_at end,
      status = case when mine.outcome = 'released' then delivery.status else mine.status end,
      error = case when mine.outcome = 'released' then delivery.error else mine.error end,
      excerpt = case when mine.outcome = 'released' then delivery.excerpt else mine.excerpt end,
      ms = case when mine.outcome = 'released' then delivery.ms else mine.ms end
    from mine
    where delivery.id = mine.id and delivery.tries = mine.tries
      and (delivery.state = 'pending' or (delivery.state = 'dead' and mine.outcome = 'delivered'))
    returning delivery.id, delivery.endpoint_id, delivery.state, delivery.failed_at, mine.outcome, mine.status
  ),
  verdict as materialized (
    select endpoint_id, bool_or(state = 'delivered') as has_success, bool_or(${raw(`outcome in ('retry', 'permanent')`)}) as has_failure,
      bool_or(status = 410) as is_gone, bool_or(outcome = 'permanent') as is_refused, max(failed_at) filter (where outcome = 'retry' and state = 'dead') as given_up_from
    from written
    where endpoint_id is not null
    group by endpoint_id
  ),
  judged as (
    update holdfast.endpoint
    set failing_since = case when verdict.has_success then null when verdict.has_failure then coalesce(endpoint.failing_since, now())
        else endpoint.failing_since end,
      disabled_at = case when ${isHopeless(p.giveUpMs)} then now() end,
      disabled_why = case when verdict.is_gone then 'The receiver answered 410: it is gone for good.'
        when ${isHopeless(p.giveUpMs)} then format('Nothing could be delivered since %s, and a delivery was given up.',
          to_char(coalesce(endpoint.failing_since, now()) at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS "UTC"')) end
    from verdict
    where endpoint.id = verdict.endpoint_id and endpoint.disabled_at is null
      and ((verdict.has_success and endpoint.failing_since is not null) or (verdict.has_failure and endpoint.failing_since is null) or ${isHopeless(p.giveUpMs)})
    returning endpoint.id, endpoint.tenant, substring(endpoint.url from '^[a-z]+://[^/?#]+') as origin, endpoint.disabled_at, endpoint.disabled_why
  ),
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
    set state = 'dead', ended_at = now(), error = 'The endpoint was switched off. ' || off.disabled_why
    from off
    where delivery.id in (select id from waiting) and delivery.endpoint_id = off.id and delivery.state = 'pending'
  ),
  announced as (
    insert into holdfast.event (type, tenant, data)
    select 'webhook.disabled', tenant, json_build_object('endpoint', id, 'origin', origin, 'why', disabled_why)
    from off
  )
  select id, state, (
    select json_agg(json_build_object('endpoint', off.id, 'tenant', off.tenant, 'origin', off.origin, 'why', off.disabled_why)) from off
  ) as off
  from written`,
)
