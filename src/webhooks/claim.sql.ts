import { raw, type Sql, sql, statement } from '../postgres/sql.ts'

/** A claimed delivery, which this process may send until the claim ends. */
export interface ClaimedDelivery {
  id: string
  /** The fence: a sender with a lower number has lost its claim. */
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
  /** When it was claimed by the database clock, in milliseconds since 1970. */
  now_ms: number
}

/**
 * How many deliveries may be claimed: in total, of each tenant, and of each lane. Tenants and lanes that are not listed get the defaults. The
 * lists are in the order of their last turn: those that have waited longest come first.
 */
export interface ClaimRoom {
  limit: number
  tenantMost: number
  /** In all slow lanes of a tenant together. */
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

/** The lane after which to continue, for tenants that have more lanes than one claim visits. */
export interface ClaimCursors {
  cursorTenants: string[]
  cursors: string[]
}

/** What a claim may take, and for how long. */
export interface DeliveryClaim extends ClaimRoom, ClaimCursors {
  claimMs: number
  /** Deliveries that this sender leaves alone for a while, because they can be neither claimed nor postponed. */
  skipped?: readonly string[]
}

/** How many lanes of one tenant a claim visits. Each job can name its own receiver, so a tenant can have any number of lanes. */
const lanesAtOnce = 250

/** Hops from tenant to tenant along the index, so that the cost depends on their number, not on the number of deliveries. */
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

/** Hops from lane to lane of a tenant along the index, up to `most` lanes. */
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

/** The deliveries that are due in the slow lanes of a tenant, or in its other lanes. */
const dueIn = (p: DeliveryClaim, isSlow: boolean, limit: Sql) => sql`
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
              and delivery.id <> all(${p.skipped ?? []}::uuid[])
            order by delivery.next_at
            limit room.most
            for update skip locked
          ) as due
          limit ${limit}
        )`

/** The tenants with room, and where to continue in their lanes. */
const openTenants = (p: ClaimRoom & ClaimCursors) => sql`
    select tenant.tenant, coalesce(known.most, ${p.tenantMost}::int) as most, coalesce(known.slow_most, ${p.tenantSlowMost}::int) as slow_most,
      known.place, coalesce(walked.cursor, '') as cursor
    from tenant
    left join unnest(${p.tenants}::text[], ${p.tenantMosts}::int[], ${p.tenantSlowMosts}::int[])
      with ordinality as known (tenant, most, slow_most, place) on known.tenant = tenant.tenant
    left join unnest(${p.cursorTenants}::text[], ${p.cursors}::text[]) as walked (tenant, cursor) on walked.tenant = tenant.tenant
    where coalesce(known.most, ${p.tenantMost}::int) > 0`

/** The lanes with due deliveries and room for them. */
const openLanes = (p: ClaimRoom) => sql`
    select lane.tenant, lane.lane, coalesce(known.most, ${p.most}::int) as most, coalesce(known.is_slow, true) as is_slow, known.place
    from lane
    left join unnest(${p.laneTenants}::text[], ${p.lanes}::text[], ${p.mosts}::int[], ${p.slows}::boolean[])
      with ordinality as known (tenant, lane, most, is_slow, place) on known.tenant = lane.tenant and known.lane = lane.lane
    where lane.next_at <= now() and coalesce(known.most, ${p.most}::int) > 0`

/** Chooses what is due: an equal share of the total for each tenant, and of each lane as many as it has room for. Their rows are locked. */
export const choosingDue = (p: DeliveryClaim) => sql`
  with recursive tenant (tenant) as (${tenants}),
  open as materialized (${openTenants(p)}),
  lane as materialized (
    select open.tenant, hop.lane, hop.next_at
    from open
    cross join lateral (${lanesOf(lanesAtOnce)}) as hop
  ),
  room as materialized (${openLanes(p)}),
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
      from (${dueIn(p, false, raw('sharing.most'))} union all ${dueIn(p, true, raw('sharing.slow_most'))}) as both_kinds
      limit sharing.most
    ) as own
    limit ${p.limit}
  )`

/** The tenants that have further lanes, and the last lane of each that was visited. */
export const furtherLanes = sql`(
    select json_object_agg(cut.tenant, cut.cursor)
    from (
      select lane.tenant, max(lane.lane) as cursor from lane group by lane.tenant having count(*) >= ${lanesAtOnce}::int
    ) as cut
  )`

/** Claims the deliveries in `due`. Their rows are locked and not guarded again: the guard is the predicate of an index, and the update would walk all of it. */
export const claimingDue = (claimMs: number) => sql`
    update holdfast.delivery
    set next_at = now() + ${claimMs}::float8 * interval '1 ms', claimed_at = now(), tries = delivery.tries + 1
    where delivery.id = any(array(select id from due))
    returning delivery.*`

/** The `claimed` deliveries, with what it takes to send them. */
export const claimedRows = raw(`
  select claimed.id, claimed.tries, claimed.failures, claimed.event_id, claimed.type, claimed.tenant, claimed.job_id, claimed.lane, claimed.body,
    claimed.endpoint_id, coalesce(endpoint.url, hook.url) as url, coalesce(endpoint.headers, hook.headers) as headers,
    coalesce(endpoint.secret, hook.secret) as secret, case when endpoint.old_secret_until > now() then endpoint.old_secret end as old_secret,
    payload.trace, endpoint.disabled_at is not null as is_off, (date_part('epoch', now()) * 1000)::float8 as now_ms, null::json as further
  from claimed
  left join holdfast.endpoint on endpoint.id = claimed.endpoint_id
  left join lateral (
    select * from holdfast.job_webhook where job_id = claimed.job_id and claimed.endpoint_id is null limit 1
  ) as hook on true
  left join lateral (select trace from holdfast.job_payload where job_id = claimed.job_id limit 1) as payload on true`)

/**
 * Claims what is due. The deliveries of a sender that dies become due again by themselves. Returns one more row, without an id, with the tenants
 * that have further lanes and the last lane that was visited.
 */
export const claimDeliveries = statement<ClaimedDelivery | { id: null; further: Record<string, string> | null }>()(
  'delivery.claim',
  (p: DeliveryClaim) => sql`
  ${choosingDue(p)},
  claimed as (${claimingDue(p.claimMs)})
  ${claimedRows}
  union all
  select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, ${furtherLanes}`,
)

/** How long the oldest delivery has been due. Hops from lane to lane along the index to the first of each. */
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
