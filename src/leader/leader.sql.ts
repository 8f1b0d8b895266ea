import { raw, sql, statement } from '../store/sql.ts'

interface Candidate {
  holder: string
  leaseMs: number
}

/** A candidate that also says how long a lead may lie vacant before that is taken for an outage of the database. */
interface Newcomer extends Candidate {
  vacantMs: number
}

/** The lead is free: its lease is over, or was taken in times to come, which is before somebody set the clock back. */
const isFree = raw(`(lease_until <= now() or renewed_at > now() + interval '2 s')`)

interface Held {
  holder: string
  term: number
}

/**
 * Takes the lead if nobody holds it, with a term that was never used. No row back: somebody leads. A row that is not taken: the lease is
 * over, but somebody else holds the row at this moment, who may be taking the lead, or a stranger. While the lease
 * stands nobody locks the row, so however many candidates ask, the leader never waits for them. A lead that lay vacant for longer than an
 * election takes shows that the database could not be reached, or that its clock was set forward, so the others need time to come back before
 * anybody judges them; the answer says how long it was.
 */
export const acquireLead = statement<{ term: number; is_taken: boolean; gap_ms: number | null }>()(
  'leader.acquire',
  (p: Newcomer) => sql`
  with free as materialized (
    select term, case when renewed_at < now() - ${p.vacantMs}::float8 * interval '1 ms' then now() - renewed_at end as gap
    from holdfast.leader
    where ${isFree}
    for update skip locked
  ),
  next as (
    update holdfast.leader
    set term = leader.term + 1, holder = ${p.holder}, acquired_at = now(), renewed_at = now(), lease_until = now() + ${p.leaseMs}::float8 * interval '1 ms',
      steady_since = case when leader.renewed_at not between now() - ${p.vacantMs}::float8 * interval '1 ms' and now() + interval '2 s'
        then now() else leader.steady_since end
    from free
    where leader.term = free.term
    returning leader.term, free.gap
  ),
  first as (
    insert into holdfast.leader (term, holder, acquired_at, renewed_at, lease_until, steady_since)
    select 1, ${p.holder}, now(), now(), now() + ${p.leaseMs}::float8 * interval '1 ms', '-infinity'
    where not exists (select from holdfast.leader)
    on conflict (is_only) do nothing
    returning term
  )
  select term, true as is_taken, (extract(epoch from gap) * 1000)::float8 as gap_ms from next
  union all
  select term, true, null from first
  union all
  select term, false, null from holdfast.leader where ${isFree} and not exists (select from free)`,
)

/** Keeps the lead, and notes how the last sweep went. No row back: the lease ran out or another term has begun, and this process leads no more. */
export const renewLead = statement<{ term: number }>()(
  'leader.renew',
  (p: Candidate & Held & { sweepMs: number | null }) => sql`
  update holdfast.leader
  set renewed_at = now(), lease_until = now() + ${p.leaseMs}::float8 * interval '1 ms',
    swept_at = case when ${p.sweepMs}::float8 is null then swept_at else now() end, sweep_ms = coalesce(${p.sweepMs}::float8, sweep_ms)
  where holder = ${p.holder} and term = ${p.term} and lease_until > now()
  returning term`,
)

/** Lets the lead go, so that the next one need not wait for the lease. */
export const releaseLead = statement<{ term: number }>()(
  'leader.release',
  (p: Held) => sql`
  update holdfast.leader
  set lease_until = now()
  where holder = ${p.holder} and term = ${p.term}
  returning term`,
)

/** Who leads, and since when. */
export interface LeaderRow extends Held {
  acquired_at: Date
  renewed_at: Date
  lease_until: Date
  is_current: boolean
  swept_at: Date | null
  sweep_ms: number | null
}

/** The leader's row. */
export const currentLeader = statement<LeaderRow>()(
  'leader.current',
  () => sql`
  select term, holder, acquired_at, renewed_at, lease_until, lease_until > now() as is_current, swept_at, sweep_ms
  from holdfast.leader`,
)
