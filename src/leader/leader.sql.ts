import { raw, sql, statement } from '../postgres/sql.ts'

interface Candidate {
  holder: string
  leaseMs: number
}

interface Newcomer extends Candidate {
  /** How long there may be no leader before that counts as an outage of the database. */
  vacantMs: number
  /** How long this process has watched the row, up to this moment, while another transaction locked it: that was no outage. Default: 0. */
  watchedMs?: number
}

/** Until when it is known that the database could be reached and its clock was not set. */
const knownUntil = (p: Newcomer) => sql`(leader.renewed_at + ${p.watchedMs ?? 0}::float8 * interval '1 ms')`

/** There is no leader: the lease has ended, or was renewed in the future, which means that the clock was set back since. */
const isFree = raw(`(lease_until <= now() or renewed_at > now() + interval '2 s')`)

interface Held {
  holder: string
  term: number
}

/**
 * Becomes leader if there is none, with a term that was never used. No row back: there is a leader. A row that is not taken: the lease has
 * ended, but another transaction locks the row, either to become leader or for reasons of its own. While the lease is valid, nobody locks
 * the row, so the leader never waits for candidates, however many there are. If there was no leader for longer than an election takes, the
 * database could not be reached, or its clock was set forward. Sessions then need time to come back before they are judged, and their
 * attempts get that time back: see `vacant_ms`.
 */
export const acquireLead = statement<{ term: number; is_taken: boolean }>()(
  'leader.acquire',
  (p: Newcomer) => sql`
  with free as materialized (
    select term,
      case when ${knownUntil(p)} < now() - ${p.vacantMs}::float8 * interval '1 ms' then extract(epoch from now() - ${knownUntil(p)}) * 1000 else 0 end as gap_ms
    from holdfast.leader
    where ${isFree}
    for update skip locked
  ),
  next as (
    update holdfast.leader
    set term = leader.term + 1, holder = ${p.holder}, acquired_at = now(), renewed_at = now(), lease_until = now() + ${p.leaseMs}::float8 * interval '1 ms',
      steady_since = case when ${knownUntil(p)} not between now() - ${p.vacantMs}::float8 * interval '1 ms' and now() + interval '2 s'
        then now() else leader.steady_since end,
      vacant_ms = leader.vacant_ms + free.gap_ms
    from free
    where leader.term = free.term
    returning leader.term
  ),
  first as (
    insert into holdfast.leader (term, holder, acquired_at, renewed_at, lease_until, steady_since)
    select 1, ${p.holder}, now(), now(), now() + ${p.leaseMs}::float8 * interval '1 ms', '-infinity'
    where not exists (select from holdfast.leader)
    on conflict (is_only) do nothing
    returning term
  )
  select term, true as is_taken from next
  union all
  select term, true from first
  union all
  select term, false from holdfast.leader where ${isFree} and not exists (select from free)`,
)

/** Renews the lease, and notes how long the last sweep took. No row back: the lease has expired or another term has begun, so this process is not the leader any more. */
export const renewLead = statement<{ term: number }>()(
  'leader.renew',
  (p: Candidate & Held & { sweepMs: number | null }) => sql`
  update holdfast.leader
  set renewed_at = now(), lease_until = now() + ${p.leaseMs}::float8 * interval '1 ms',
    swept_at = case when ${p.sweepMs}::float8 is null then swept_at else now() end, sweep_ms = coalesce(${p.sweepMs}::float8, sweep_ms)
  where holder = ${p.holder} and term = ${p.term} and lease_until > now()
  returning term`,
)

/** Ends the lease, so that the next leader need not wait for it to expire. */
export const releaseLead = statement<{ term: number }>()(
  'leader.release',
  (p: Held) => sql`
  update holdfast.leader
  set lease_until = now()
  where holder = ${p.holder} and term = ${p.term}
  returning term`,
)

/** The leader, and its lease. */
export interface LeaderRow extends Held {
  acquired_at: Date
  renewed_at: Date
  lease_until: Date
  is_current: boolean
  swept_at: Date | null
  sweep_ms: number | null
}

/** The current leader. */
export const currentLeader = statement<LeaderRow>()(
  'leader.current',
  () => sql`
  select term, holder, acquired_at, renewed_at, lease_until, lease_until > now() as is_current, swept_at, sweep_ms
  from holdfast.leader`,
)
