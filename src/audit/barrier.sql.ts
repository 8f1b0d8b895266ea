import { eventOf, sql } from '../postgres/sql.ts'
import { type AuditScope, check, past } from './check.sql.ts'

const latest = (p: AuditScope) => sql`
      select *
      from holdfast.owned_barrier
      order by arming desc
      limit ${p.latest}::bigint`

/** The checks of barriers over executions that another system owns. */
export const ownedChecks = {
  'owned-counters-match-ledger': check(
    'owned_counters_match_ledger',
    (p) => sql`
    select barrier.id, format('counts %s of %s, but %s of its %s parts have arrived', barrier.arrived, barrier.total, ledger.arrived, ledger.total)
    from (${latest(p)}) as barrier
    cross join lateral (
      select count(*) as total, count(part.arrived_at) as arrived
      from holdfast.owned_part as part
      where part.barrier_id = barrier.id
    ) as ledger
    where (barrier.arrived, barrier.total) is distinct from (ledger.arrived::int, ledger.total::int)`,
  ),
  'one-firing-per-arming': check(
    'one_firing_per_arming',
    (p) => sql`
    select barrier.id, format('has %s, but its continuation was submitted %s times',
      case when barrier.fired_at is null then 'not fired' else 'fired' end, told.firings)
    from (${latest(p)}) as barrier
    cross join lateral (
      select count(*) as firings
      from holdfast.event
      where event.job_id = barrier.job_id and event.type = ${eventOf('submit')}
    ) as told
    where told.firings <> case when barrier.fired_at is null then 0 else 1 end
      -- a continuation that has ended may have been pruned since
      and not (told.firings = 0 and coalesce(barrier.fired_at <= now() - (select min(keep_ms) from holdfast.prune_cursor) * interval '1 ms', false))`,
  ),
  'drained-is-fired': check(
    'drained_is_fired',
    (p) => sql`
    select barrier.id, 'has all its parts, but its continuation was never fired'
    from (${latest(p)}) as barrier
    where barrier.fired_at is null and barrier.expired_at is null and barrier.moved_at < ${past(p)}
      and barrier.total = (select count(*) from holdfast.owned_part as part where part.barrier_id = barrier.id and part.arrived_at is not null)`,
  ),
} as const
