/**
 * Unique jobs. A row of `unique_job` says which job holds a key; whether that job still counts is asked from the job itself: from `ready`, or
 * from `outcome`. So a key cannot be left taken by a process that died, and nothing but a submit ever touches the row.
 *
 * The invariant: of all submits with a key, one at a time decides. Each locks the row first, and then looks at the jobs with a snapshot of its
 * own, taken after the lock; the jobs of whoever had the lock before are committed by then.
 *
 * A holder that is queued is replaced by cancelling it: it leaves `ready` and gets its outcome here, as with any cancel. A claim takes the same
 * row out of `ready`, so one of the two gets it. If the claim does, the holder runs on, and the new job is its successor. The next replace
 * cancels the successor if it is still queued, so that there is only one, with the latest input.
 */
import { raw, sql, statement, target } from '../postgres/sql.ts'
import { ending } from './end.sql.ts'
import { isAwaiting, isLive } from './leases.sql.ts'

const neverAt = raw(`timestamptz '9999-01-01 00:00:00+00'`)

/** Defines the function that takes a key for a new job, and says what to do with the job. */
export const uniqueDefinition = statement<never>()(
  'define.take_unique',
  () => sql`
  create or replace function holdfast.take_unique(of_tenant text, of_kind text, called text, wanted uuid, held_while text, on_taken text, window_ms float8,
    due_at timestamptz, out answer text, out holder uuid)
  language plpgsql volatile set enable_seqscan = off as $$
  declare
    held holdfast.unique_job;
    alive uuid[];
    ends timestamptz := now() + window_ms * interval '1 ms';
    because text := format('It was replaced by job %s, which was submitted with the same unique key.', wanted);
  begin
    answer := 'submitted';
    holder := wanted;
    loop
      insert into holdfast.unique_job (tenant, kind, key, job_id, until) values (of_tenant, of_kind, called, wanted, ends) on conflict do nothing;
      if found then
        return;
      end if;
      select * into held from holdfast.unique_job as own where own.tenant = of_tenant and own.kind = of_kind and own.key = called for update;
      -- gone: retention has removed it meanwhile
      exit when found;
    end loop;
    alive := array(select one.id from unnest(held.job_id || held.earlier) as one (id) where ${isLive('one.id')});
    if coalesce(held.until, now()) > now() or (case when held_while = 'queued'
        then exists (select from holdfast.ready where ready.job_id = held.job_id) else cardinality(alive) > 0 end) then
      holder := case when held.job_id = any(alive) or cardinality(alive) = 0 then held.job_id else alive[1] end;
      answer := 'kept';
      if on_taken = 'reschedule' then
        update holdfast.ready set run_at = due_at where ready.job_id = holder and ready.run_at < ${neverAt} and not ${isAwaiting('ready')};
        if found then
          answer := 'rescheduled';
          insert into holdfast.event_log (type, state, job_id, kind, tenant, attempt, stage, data)
          select 'job.rescheduled', ${target('submit')}, ready.job_id, ready.kind, ready.tenant, ready.attempt, ready.stage, json_build_object('runAt', due_at)
          from holdfast.ready where ready.job_id = holder;
        end if;
      end if;
      if on_taken <> 'replace' or cardinality(alive) = 0 then
        return;
      end if;
      with gone as materialized (
        delete from holdfast.ready
        where ready.job_id = held.job_id and ready.run_at < ${neverAt}
          and not exists (select from holdfast.barrier where barrier.job_id = held.job_id)
        returning ready.job_id as id, ready.kind, ready.tenant as own_tenant, null::bigint as session_id, ready.attempt, ready.stage, ready.failures,
          ready.crashes, ready.is_flawed, ready.barrier_id
      ),
      marked as (select null::bigint as id where false),
      emptied as (select null::bigint as id where false),
      ${ending({
        move: 'cancel',
        state: target('cancel'),
        error: raw(`json_build_object('code', 'job_cancelled', 'message', because)`),
        data: raw(`json_build_object('reason', because)`),
      })}
      select array(select one.id from unnest(alive) as one (id) where one.id not in (select gone.id from gone)) into alive;
      answer := 'replaced';
      holder := wanted;
    end if;
    update holdfast.unique_job as own set job_id = wanted, earlier = alive, taken_at = now(), until = ends
    where own.tenant = of_tenant and own.kind = of_kind and own.key = called;
  end $$`,
)
