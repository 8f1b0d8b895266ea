import type { Page } from '../postgres/page.ts'
import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { firing, isOpen, wakeIfFired } from './barrier.sql.ts'

/** A barrier that was compared with its ledger. */
export interface ComparedRow {
  id: string
  job_id: string
  total: number
  /** The number of arrived parts by the ledger, which the count now equals. */
  arrived: number
  /** The count before. */
  was: number
  was_overdue: boolean
  is_fired: boolean
}

/** Whether it has expired without firing. */
const isOverdue = sql`${isOpen} and barrier.expires_at < now()`
/** Whether it has expired with parts missing, by the ledger. The same condition selects barriers, and checks them again before they are removed. */
const isExpiredBarrier = sql`${isOverdue} and holdfast.owned_arrived(barrier.id) < barrier.total`
const lostMs = raw('(extract(epoch from now() - barrier.expires_at) * 1000)::float8 as lost_ms')

/** Some of the open barriers that fulfil a condition. All are looked up first, so that no plan walks over those that have ended. */
const openOnes = (p: Page<string>, which: Sql, lost = raw('0::float8 as lost_ms')) => sql`
  with found as materialized (
    select barrier.id, ${lost}
    from holdfast.owned_barrier as barrier
    where ${isOpen} and ${which}
  )
  select id, lost_ms
  from found
  where id > ${p.after}::text
  order by id
  limit ${p.limit}`

/** Open barriers whose count says that all parts have arrived, or is negative. */
export const findDrained = statement<{ id: string; lost_ms: number }>()('owned_barrier.drained', (p: Page<string>) =>
  openOnes(p, sql`(barrier.arrived >= barrier.total or barrier.arrived < 0)`),
)

/** Quiet barriers whose count has not been compared with the ledger for a while. */
export const findUnchecked = statement<{ id: string; lost_ms: number }>()(
  'owned_barrier.unchecked',
  (p: Page<string> & { quietMs: number }) =>
    openOnes(p, sql`greatest(barrier.moved_at, barrier.checked_at) < now() - ${p.quietMs}::float8 * interval '1 ms'`),
)

/** Expired barriers without an owner. */
export const findUnowned = statement<{ id: string; lost_ms: number }>()('owned_barrier.unowned', (p: Page<string>) =>
  openOnes(p, sql`barrier.expires_at < now() and barrier.owner is null and barrier.due_at <= now()`, lostMs),
)

/** Barriers that expired a while ago and whose owner is none of these: a process with that owner would have asked it by now. */
export const findStrange = statement<{ id: string; owner: string; lost_ms: number }>()(
  'owned_barrier.strange',
  (p: { owners: readonly string[]; graceMs: number; limit: number }) => sql`
  select barrier.id, barrier.owner, ${lostMs}
  from holdfast.owned_barrier as barrier
  where ${isOverdue} and barrier.owner is not null and barrier.owner <> all(${p.owners}::text[])
    and barrier.due_at <= now() - ${p.graceMs}::float8 * interval '1 ms'
  order by barrier.due_at, barrier.id
  limit ${p.limit}`,
)

/** Recounts open barriers from the ledger, and fires those whose parts have all arrived. */
export const compareOwned = statement<ComparedRow>()(
  'owned_barrier.compare',
  (p: { ids: readonly string[] }) => sql`
  with held as materialized (
    select barrier.*
    from holdfast.owned_barrier as barrier
    where barrier.id = any(${p.ids}::text[]) and ${isOpen}
    order by barrier.id
    for no key update skip locked
  ),
  ledger as materialized (
    select held.id, held.arrived as was, holdfast.owned_arrived(held.id) as arrived, coalesce(held.expires_at < now(), false) as was_overdue
    from held
  ),
  compared as (
    update holdfast.owned_barrier as barrier
    set arrived = ledger.arrived, checked_at = now(), moved_at = case when ledger.arrived = ledger.was then barrier.moved_at else now() end,
      fired_at = case when ledger.arrived >= barrier.total then now() end
    from ledger
    where barrier.id = ledger.id
    returning barrier.*, ledger.was, ledger.was_overdue, barrier.fired_at is not null as is_fired
  ),
  ${firing('compared')}
  select id, job_id, total, arrived, was, was_overdue, is_fired, ${wakeIfFired} as woken
  from compared
  order by id`,
)

/** Announces barriers that ended without their continuation, as a CTE. `gone` has all their columns. */
function announcing(word: Sql): Sql {
  return sql`announced as (
    insert into holdfast.event_log (type, job_id, kind, tenant, attempt, stage, data)
    select 'barrier.expired', job_id, kind, coalesce(tenant, 'default'), 0, 0, json_build_object('barrier', id, 'end', ${word}, 'owner', owner,
      'execution', execution, 'total', total, 'arrived', arrived, 'expiredAt', expires_at)
    from gone
  )`
}

/** Closes expired barriers without an owner that have missing parts: there is no one to notify, and later arrivals are abandoned. */
export const closeUnowned = statement<{ id: string; total: number; arrived: number }>()(
  'owned_barrier.close',
  (p: { ids: readonly string[] }) => sql`
  with gone as (
    update holdfast.owned_barrier as barrier
    set expired_at = now(), moved_at = now()
    where barrier.id = any(array(
      select barrier.id
      from holdfast.owned_barrier as barrier
      where barrier.id = any(${p.ids}::text[]) and barrier.owner is null and ${isExpiredBarrier}
      order by barrier.id
      for no key update skip locked
    ))
    returning barrier.*
  ),
  ${announcing(sql`'closed'`)}
  select id, total, arrived
  from gone`,
)

/** An expired barrier whose owner is to be asked. */
export interface OverdueRow {
  id: string
  arming: number
  tenant: string | null
  execution: string
  total: number
  arrived: number
  lost_ms: number
}

/**
 * Takes the next expired barrier of an owner, and postpones the next look at it, longer each time without a result. So an owner that is
 * down is not asked again and again, another leader does not ask at the same time, and a crash before the answer costs one wait.
 */
export const takeOverdue = statement<OverdueRow>()(
  'owned_barrier.take',
  (p: { owner: string }) => sql`
  update holdfast.owned_barrier as barrier
  set asks = least(barrier.asks + 1, 100), due_at = now() + least(60, power(2, least(barrier.asks, 6))) * interval '1 s'
  where barrier.id = any(array(
    select barrier.id
    from holdfast.owned_barrier as barrier
    where ${isOverdue} and barrier.owner = ${p.owner}::text and barrier.due_at <= now()
    order by barrier.due_at, barrier.id
    limit 1
    for no key update skip locked
  ))
  returning barrier.id, barrier.arming, barrier.tenant, barrier.execution, barrier.total, barrier.arrived, ${lostMs}`,
)

/** Which arming of which barrier is meant. */
export interface Armed {
  readonly id: string
  readonly arming: number
}

/**
 * Locks an expired barrier until the transaction ends, if its arming is still the one that was asked about and parts are still missing: so it
 * can't be re-armed, and nothing can arrive, before the execution is marked.
 */
export const holdExpired = statement<{ total: number; left: number }>()(
  'owned_barrier.hold',
  (p: Armed) => sql`
  select barrier.total, barrier.total - holdfast.owned_arrived(barrier.id) as left
  from holdfast.owned_barrier as barrier
  where barrier.id = ${p.id}::text and barrier.arming = ${p.arming}::bigint and ${isExpiredBarrier}
  for update`,
)

/** What the owner said about the execution of a barrier that is removed. */
export type OwnedEnd = 'marked' | 'ended' | 'gone'

/**
 * Removes an expired barrier whose execution has ended, and keeps a record of it. Checks the same condition that selected it. No row: it was
 * re-armed, or has moved.
 */
export const removeExpired = statement<{ id: string }>()(
  'owned_barrier.remove',
  (p: Armed & { word: OwnedEnd }) => sql`
  with gone as (
    delete from holdfast.owned_barrier as barrier
    where barrier.id = ${p.id}::text and barrier.arming = ${p.arming}::bigint and ${isExpiredBarrier}
    returning barrier.*
  ),
  kept as (
    insert into holdfast.owned_end (job_id, barrier_id, arming, tenant, kind, owner, execution, word, total, arrived, opened_at, armed_at, expires_at,
      asks, is_rearmed)
    select job_id, id, arming, tenant, kind, owner, execution, ${p.word}::text, total, arrived, opened_at, armed_at, expires_at, asks,
      arming > opened_arming
    from gone
    on conflict (job_id) do nothing
  ),
  ${announcing(sql`${p.word}::text`)}
  select id
  from gone`,
)

/** Removes barriers that fired or expired long ago. */
export const forgetOwned = statement<{ id: string }>()(
  'owned_barrier.forget',
  (p: { olderThanMs: number; limit: number }) => sql`
  delete from holdfast.owned_barrier
  where id = any(array(
    select barrier.id
    from holdfast.owned_barrier as barrier
    where coalesce(barrier.fired_at, barrier.expired_at) < now() - ${p.olderThanMs}::float8 * interval '1 ms'
    order by barrier.id
    limit ${p.limit}
    for update skip locked
  ))
  returning id`,
)

/** Removes the records of barriers that were removed long ago. */
export const forgetEnds = statement<{ job_id: string }>()(
  'owned_end.forget',
  (p: { olderThanMs: number; limit: number }) => sql`
  delete from holdfast.owned_end
  where job_id = any(array(
    select owned_end.job_id
    from holdfast.owned_end
    where owned_end.ended_at < now() - ${p.olderThanMs}::float8 * interval '1 ms'
    order by owned_end.ended_at
    limit ${p.limit}
    for update skip locked
  ))
  returning job_id`,
)
