/**
 * Signals, and the stages that wait for them.
 *
 * A job that waits is queued, and due when its wait ends. A signal is a row; if its job waits for it, it also makes the job due. The invariant:
 * a job whose signal has come is never left waiting. The two writes that could miss each other are the signal and the settle that starts to
 * wait. Both take the advisory lock of the job, and read only after that, in functions with their own snapshots: whichever comes second sees
 * what the first one wrote. The lock ends with the transaction, so a process that dies leaves nothing.
 *
 * A wait ends by one of two rows: a signal, or `closed_at`, which is written under the same lock once the time is over. So every signal that
 * was accepted is delivered if its job reaches the stage, and one that comes too late is refused.
 */
import { signalLockClass } from '../postgres/locks.ts'
import { raw, sql, statement } from '../postgres/sql.ts'

const lock = (job: string) => raw(`perform pg_advisory_xact_lock(${signalLockClass}, hashtext(${job}::text));`)

/** When parked jobs are due. Their work is done, so a signal must not make them due. */
const neverAt = raw(`timestamptz '9999-01-01 00:00:00+00'`)

/** Defines the functions of signals. All are volatile, so that each statement in them has its own snapshot. */
export const signalDefinitions = [
  // looks for a signal; opens the wait for it, and closes it once its time is over
  statement<never>()(
    'define.await_signal',
    () => sql`
    create or replace function holdfast.await_signal(wanted uuid, at_stage smallint, called text, timeout_ms float8, out is_sent boolean, out payload text,
      out is_over boolean)
    language plpgsql volatile set enable_seqscan = off as $$
    begin
      ${lock('wanted')}
      select true, signal.payload::text into is_sent, payload from holdfast.signal where signal.job_id = wanted and signal.name = called;
      is_sent := coalesce(is_sent, false);
      insert into holdfast.signal_wait (job_id, stage, name, until)
      values (wanted, at_stage, called, now() + timeout_ms * interval '1 ms')
      on conflict (job_id, stage) do update set name = excluded.name, until = excluded.until, since = now(), closed_at = null
      where signal_wait.name <> excluded.name;
      if not is_sent then
        update holdfast.signal_wait set closed_at = coalesce(signal_wait.closed_at, now())
        where signal_wait.job_id = wanted and signal_wait.stage = at_stage and signal_wait.until <= now();
        is_over := found;
      end if;
      is_over := coalesce(is_over, false);
    end $$`,
  ),
  // until when a job waits: now, if its signal has come
  statement<never>()(
    'define.wait_until',
    () => sql`
    create or replace function holdfast.wait_until(wanted uuid, at_stage smallint, called text) returns timestamptz
    language plpgsql volatile set enable_seqscan = off as $$
    begin
      ${lock('wanted')}
      if exists (select from holdfast.signal where signal.job_id = wanted and signal.name = called) then
        return now();
      end if;
      return coalesce((select signal_wait.until from holdfast.signal_wait where signal_wait.job_id = wanted and signal_wait.stage = at_stage), now());
    end $$`,
  ),
  // stores a signal, and makes its job due if it waits for it; says what became of it
  statement<never>()(
    'define.send_signal',
    () => sql`
    create or replace function holdfast.send_signal(wanted uuid, of_tenant text, called text, carried text, sender text) returns text
    language plpgsql volatile set enable_seqscan = off as $$
    declare
      own record;
      waits record;
      answer text;
    begin
      ${lock('wanted')}
      select job.kind, job.tenant into own from holdfast.job where job.id = wanted and (of_tenant is null or job.tenant = of_tenant);
      if not found then
        return 'none';
      end if;
      if exists (select from holdfast.outcome where outcome.job_id = wanted) then
        return 'ended';
      end if;
      select signal_wait.stage, signal_wait.closed_at into waits from holdfast.signal_wait where signal_wait.job_id = wanted and signal_wait.name = called
      order by signal_wait.stage desc
      limit 1;
      if waits.closed_at is not null then
        return 'late';
      end if;
      if waits.stage is null and exists (
        select
        from (
          select kind.stages from holdfast.kind where kind.tenant in ('', own.tenant) and kind.name = own.kind order by kind.tenant limit 1
        ) as known
        where not exists (select from json_array_elements(known.stages) as one (stage) where one.stage ->> 'signal' = called)
      ) then
        return 'unknown';
      end if;
      insert into holdfast.signal (job_id, name, payload, by) values (wanted, called, carried::json, sender) on conflict do nothing;
      if not found then
        return 'repeated';
      end if;
      update holdfast.ready set run_at = now()
      where ready.job_id = wanted and ready.stage = waits.stage and ready.run_at > now() and ready.run_at < ${neverAt};
      answer := case when found then 'awaited' else 'kept' end;
      insert into holdfast.event_log (type, state, job_id, kind, tenant, attempt, stage, data)
      select 'job.signalled', status.state, wanted, own.kind, own.tenant, coalesce(status.attempt, 0), coalesce(status.stage, 0),
        json_strip_nulls(json_build_object('signal', called, 'by', sender))
      from holdfast.job_status as status where status.id = wanted;
      return answer;
    end $$`,
  ),
]
