import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { gateKeyOf } from '../transitions/gates.sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'

/** The job that a barrier submits when its last part has arrived. */
export interface Continuation {
  kind: string
  queue: string
  priority: number
  crashBudget: number
  delayMs: number
  runAt: Date | null
  /** What the limit of its kind counts it by; null if that has no key. */
  limitKey: string | null
  input: string
  meta: string | null
}

/** A barrier to open, checked. */
export interface OpenParams {
  id: string
  tenant: string
  /** Names of parts; empty if they are counted. */
  names: readonly string[]
  /** How many unnamed parts there are; their names are their numbers, from 0. */
  count: number
  partsHash: string
  expiresAt: Date | null
  expiresMs: number | null
  owner: string | null
  execution: string | null
  continuation: Continuation
}

/** What an open did; if `arming` is null, it did nothing. */
export interface OpenedRow {
  is_past: boolean
  arming: number | null
  is_new: boolean | null
  is_fired: boolean | null
  job_id: string | null
}

/** Whether a barrier can still fire. */
export const isOpen = raw('barrier.fired_at is null and barrier.expired_at is null')

/** The id of the continuation: a UUID of version 7 with the time of the arming; the rest is derived from the barrier and its arming. */
function continuationId(id: Sql, arming: Sql): Sql {
  const hash = sql`left(encode(sha256(convert_to(${id} || '/' || ${arming}, 'UTF8')), 'hex'), 32)`
  const time = raw(`lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0')`)
  return sql`overlay(overlay(overlay(${hash} placing ${time} from 1) placing '7' from 13) placing '8' from 17)::uuid`
}

/**
 * Submits the continuations of fired barriers, as CTEs. `source` has all columns of the barriers, and is_fired. The job's id is derived from
 * the arming, so a barrier that fires a second time finds that its job exists, and adds none.
 */
export function firing(source: string): Sql {
  const from = raw(source)
  return sql`fired as (
    insert into holdfast.job (id, kind, queue, tenant, priority, crash_budget, submitted_at, limit_key)
    select source.job_id, source.kind, source.queue, coalesce(source.tenant, 'default'), source.priority, source.crash_budget, now(), source.limit_key
    from ${from} as source
    where source.is_fired
    on conflict (id) do nothing
    returning id, kind, queue, tenant, priority, crash_budget, limit_key
  ),
  fired_ready as (
    insert into holdfast.ready (job_id, run_at, kind, queue, tenant, priority, crash_budget, gate_key)
    select fired.id, greatest(now(), coalesce(source.run_at, now() + source.delay_ms * interval '1 ms')), fired.kind, fired.queue, fired.tenant, fired.priority,
      fired.crash_budget, ${gateKeyOf('fired')}
    from ${from} as source
    join fired on fired.id = source.job_id
  ),
  fired_payload as (
    insert into holdfast.job_payload (job_id, input, meta)
    select source.job_id, source.input, source.meta
    from ${from} as source
    join fired on fired.id = source.job_id
    on conflict (job_id) do nothing
  )`
}

/** Wakes a worker if a continuation was fired. */
export const wakeIfFired = sql`case when exists (select from fired) then ${wakeIdle} end`

/**
 * Opens a barrier, or re-arms an open one: it then has the new expiry, continuation and owner and a higher arming, and keeps the parts that
 * have arrived. It fires at once if no part is missing. The arming is drawn while the row is locked, so that the last to arm has the highest.
 * If no arming is returned: it has fired, belongs to another tenant, has other parts, the expiry is past, or another process opened it
 * between the look and the insert, with a number drawn later.
 */
export const openOwned = statement<OpenedRow>()(
  'owned_barrier.open',
  (p: OpenParams) => sql`
  with held as materialized (
    select barrier.id
    from holdfast.owned_barrier as barrier
    where barrier.id = ${p.id}::text
    for no key update
  ),
  wanted as materialized (
    select nextval('holdfast.owned_arming') as arming, coalesce(${p.expiresAt}::timestamptz, now() + ${p.expiresMs}::float8 * interval '1 ms') as expires_at
    from (values (true)) as once (is_once)
    left join held on true
  ),
  armed as (
    insert into holdfast.owned_barrier as barrier (id, tenant, arming, opened_arming, expires_at, due_at, total, parts_hash, owner, execution,
      fired_at, job_id, kind, queue, priority, crash_budget, delay_ms, run_at, limit_key, input, meta)
    select ${p.id}::text, ${p.tenant}::text, wanted.arming, wanted.arming, wanted.expires_at, wanted.expires_at, ${p.names.length + p.count}::int,
      ${p.partsHash}::text, ${p.owner}::text, ${p.execution}::text, case when ${p.names.length + p.count}::int = 0 then now() end,
      ${continuationId(sql`${p.id}::text`, raw('wanted.arming'))}, ${p.continuation.kind}::text, ${p.continuation.queue}::text,
      ${p.continuation.priority}::smallint, ${p.continuation.crashBudget}::smallint, ${p.continuation.delayMs}::float8,
      ${p.continuation.runAt}::timestamptz, ${p.continuation.limitKey}::text, ${p.continuation.input}::json, ${p.continuation.meta}::json
    from wanted
    where coalesce(wanted.expires_at > now(), true)
    on conflict (id) do update
    set arming = excluded.arming, armed_at = now(), moved_at = now(), expires_at = excluded.expires_at, due_at = excluded.due_at, asks = 0,
      expired_at = null, owner = excluded.owner, execution = excluded.execution, job_id = excluded.job_id, kind = excluded.kind,
      queue = excluded.queue, priority = excluded.priority, crash_budget = excluded.crash_budget, delay_ms = excluded.delay_ms,
      run_at = excluded.run_at, limit_key = excluded.limit_key, input = excluded.input, meta = excluded.meta, arrived = holdfast.owned_arrived(barrier.id),
      fired_at = case when holdfast.owned_arrived(barrier.id) >= barrier.total then now() end
    where barrier.fired_at is null and barrier.tenant is not distinct from excluded.tenant and barrier.parts_hash = excluded.parts_hash
      and barrier.arming < excluded.arming
    returning barrier.*, barrier.arming = barrier.opened_arming as is_new, barrier.fired_at is not null as is_fired
  ),
  listed as (
    insert into holdfast.owned_part (barrier_id, name)
    select armed.id, part.name
    from armed
    cross join (
      select name from unnest(${p.names}::text[]) as named (name)
      union all
      select number::text from generate_series(0, ${p.count}::int - 1) as counted (number)
    ) as part
    where armed.is_new
  ),
  ${firing('armed')}
  select coalesce(wanted.expires_at <= now(), false) as is_past, armed.arming, armed.is_new, armed.is_fired, armed.job_id, ${wakeIfFired} as woken
  from wanted
  left join armed on true`,
)

/** One arrival. */
export interface Arrival {
  id: string
  part: string
  /** Null: of any tenant. */
  tenant: string | null
}

/** What an arrival found and did. */
export interface ArrivedRow {
  place: number
  /** Whether there is a barrier that has fired, or still accepts parts. */
  is_there: boolean
  is_part: boolean
  is_new: boolean
  /** Whether the barrier was fired by one of these arrivals. */
  is_fired: boolean
}

/**
 * Records arrivals, many at a time, and fires the barriers whose last part has arrived. The rows of the barriers are locked first, in order:
 * they decide who is last, and no barrier can be armed, aborted or expired in the meantime. The count says when to look at the ledger, and the
 * ledger decides: a count that drifted fires nothing early.
 */
export const arriveOwned = statement<ArrivedRow>()(
  'owned_barrier.arrive',
  (p: { arrivals: readonly Arrival[] }) => sql`
  with given as materialized (
    select *
    from unnest(${p.arrivals.map(({ id }) => id)}::text[], ${p.arrivals.map(({ part }) => part)}::text[], ${p.arrivals.map(({ tenant }) => tenant)}::text[])
      with ordinality as given (id, part, tenant, place)
  ),
  held as materialized (
    select barrier.*
    from holdfast.owned_barrier as barrier
    where barrier.id in (select id from given)
    order by barrier.id
    for no key update
  ),
  admitted as materialized (
    select given.place, given.part, held.*
    from given
    join held on held.id = given.id and (given.tenant is null or given.tenant = held.tenant)
    where held.expired_at is null
  ),
  arrived as (
    update holdfast.owned_part as part
    set arrived_at = now()
    from admitted
    where part.barrier_id = admitted.id and part.name = admitted.part and part.arrived_at is null and admitted.fired_at is null
    returning part.barrier_id, part.name
  ),
  counted as materialized (
    select barrier_id, count(*)::int as count
    from arrived
    group by barrier_id
  ),
  tallied as materialized (
    select held.id, case when held.arrived >= 0 and held.arrived + counted.count < held.total then held.arrived + counted.count
      else holdfast.owned_arrived(held.id) end as arrived
    from counted
    join held on held.id = counted.barrier_id
  ),
  bumped as (
    update holdfast.owned_barrier as barrier
    set arrived = tallied.arrived, moved_at = now(), fired_at = case when tallied.arrived >= barrier.total then now() end
    from tallied
    where barrier.id = tallied.id
    returning barrier.*, barrier.fired_at is not null as is_fired
  ),
  ${firing('bumped')}
  select given.place::int, admitted.id is not null as is_there,
    exists (select from holdfast.owned_part as part where part.barrier_id = admitted.id and part.name = given.part) as is_part,
    arrived.name is not null as is_new, coalesce(bumped.is_fired, false) as is_fired, ${wakeIfFired} as woken
  from given
  left join admitted on admitted.place = given.place
  left join arrived on arrived.barrier_id = admitted.id and arrived.name = given.part
  left join bumped on bumped.id = admitted.id
  order by given.place`,
)

/** Removes an open barrier: later arrivals are abandoned, and nothing fires. A barrier that has fired is kept, and reported as such. */
export const abortOwned = statement<{ is_aborted: boolean }>()(
  'owned_barrier.abort',
  (p: { id: string; tenant: string | null }) => sql`
  with held as materialized (
    select barrier.id, barrier.fired_at is null as is_aborted
    from holdfast.owned_barrier as barrier
    where barrier.id = ${p.id}::text and (${p.tenant}::text is null or barrier.tenant = ${p.tenant})
    for update
  ),
  removed as (
    delete from holdfast.owned_barrier as barrier
    using held
    where barrier.id = held.id and held.is_aborted
  )
  select is_aborted
  from held`,
)

/** A barrier, as it is shown to callers. */
export interface OwnedRow {
  id: string
  tenant: string | null
  arming: number
  opened_at: Date
  armed_at: Date
  expires_at: Date | null
  fired_at: Date | null
  expired_at: Date | null
  total: number
  arrived: number
  parts_hash: string
  owner: string | null
  execution: string | null
  kind: string
  job_id: string
  /** The first parts that have not arrived. */
  missing: string[]
}

/** One barrier with the first of its missing parts. */
export const getOwned = statement<OwnedRow>()(
  'owned_barrier.get',
  (p: { id: string; tenant: string | null; shown: number }) => sql`
  select barrier.id, barrier.tenant, barrier.arming, barrier.opened_at, barrier.armed_at, barrier.expires_at, barrier.fired_at, barrier.expired_at,
    barrier.total, barrier.arrived, barrier.parts_hash, barrier.owner, barrier.execution, barrier.kind, barrier.job_id,
    array(
      select part.name
      from holdfast.owned_part as part
      where part.barrier_id = barrier.id and part.arrived_at is null
      order by part.name
      limit ${p.shown}
    ) as missing
  from holdfast.owned_barrier as barrier
  where barrier.id = ${p.id}::text and (${p.tenant}::text is null or barrier.tenant = ${p.tenant})`,
)
