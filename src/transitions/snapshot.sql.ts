import type { MoveName } from '../job/machine.ts'
import { eventOf, raw, type Sql, sql, statement, target } from '../postgres/sql.ts'
import { factsOf, unasked } from './facts.sql.ts'
import { deadlineOf } from './leases.sql.ts'

/**
 * Keeps the facts about rows as they are settled, as a CTE. `source` has id, attempt, lease_id and slot. The facts are read by a stable
 * function, which sees the database as it was before the statement. If it fails, the snapshot holds the reason instead.
 */
export function snapshotting(move: MoveName, source: string): Sql {
  return sql`snapshot as (
    insert into holdfast.snapshot (job_id, attempt, event, facts)
    select id, attempt, ${eventOf(move)}, holdfast.snapshot_of(id, lease_id, slot)
    from ${raw(source)}
    on conflict (job_id, attempt) do nothing
  )`
}

/** The attempt in a slot of a lease, with the columns of `job_status`. To search the leases for the job would cost a look at many. */
const attempt = sql`(
        select own.id, own.kind, own.queue, own.tenant, ${target('claim')}::text as state, lease.stage, coalesce(lease.attempts[in_slot + 1], 1) as attempt,
          coalesce(lease.failures[in_slot + 1], 0::smallint) as failures, coalesce(lease.crashes[in_slot + 1], 0::smallint) as crashes, own.crash_budget,
          own.priority, own.submitted_at, null::timestamptz as run_at, ${deadlineOf('lease')} as deadline_at, lease.session_id,
          null::timestamptz as finished_at, null::json as error, own.barrier_id, own.position, coalesce(lease.flawed[in_slot + 1], false) as is_flawed
        from holdfast.job as own
        join holdfast.lease on lease.id = in_lease
        where own.id = wanted
      ) as job`

/**
 * Defines the function that reads the facts of a snapshot. An error in it must not undo the settle. By its settings it uses only indexes: a
 * plan that a connection made while a table was small must not read all of it once it is large.
 */
export const snapshotDefinition = statement<never>()(
  'define.snapshot_of',
  () => sql`
    create or replace function holdfast.snapshot_of(wanted uuid, in_lease bigint, in_slot int) returns json language plpgsql stable
    set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off set timezone = 'UTC' as $$
    begin
      return coalesce((select ${factsOf(raw('wanted'), unasked)} from ${attempt}), json_build_object('trouble', 'no source knew the job'));
    exception when others then
      return json_build_object('trouble', sqlerrm);
    end $$`,
)
