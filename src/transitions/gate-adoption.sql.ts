/**
 * Adoption: jobs that were queued or claimed before a limit was set get the key of their gate. The ordinary claim leaves them alone from the
 * moment at which the limit is committed, so they would wait for ever.
 *
 * Whoever sets a limit walks over the queued jobs that it applies to. The leader repeats that until a minute has passed since the limit was set
 * and every transaction that is older has ended. A transaction that took its snapshot before, but wrote nothing until then, can't be known; it
 * may queue jobs much later. So the leader always walks over all jobs with limits, slowly.
 */
import { raw, sql, statement } from '../postgres/sql.ts'
import { gateKeyOf, steady, tags } from './gates.sql.ts'

/** Whether a gate key is not the one that a job should have. A fair queue has the tenant before the space, others have nothing. */
const isStray = (row: string) =>
  raw(`(${row}.gate_key is null or ('f' || lane.queue = any(${tags})) = (${row}.gate_key like ' %'))`)

/** Sends these rows of `ready` to their gates, if they don't wait there. Returns how many. Locked ones are left for the next walk. */
const sendToGates = sql`
    create or replace function holdfast.send_to_gates(in_places tid[]) returns int language plpgsql ${steady} as $$
    declare
      moved int;
    begin
      update holdfast.ready as stray
      set gate_key = (select ${gateKeyOf('job')} from holdfast.job where job.id = stray.job_id limit 1)
      where stray.ctid = any(array(
        select lane.ctid from holdfast.ready as lane where lane.ctid = any(in_places) and ${isStray('lane')} for update skip locked
      ));
      get diagnostics moved = row_count;
      return moved;
    end $$`

/**
 * One step of a walk over queued jobs, in the order of the claim's index: looks at `in_most` of one kind, from this position on, and sends those
 * to their gates that don't wait there. `for_all`: also of kinds whose jobs were adopted before. `is_end`: there are no more. Priority 5 is the
 * end of a kind. `in_began` is when the walk began. `failed`: how many could not be sent, and `problem` is why.
 */
const adoptJobs = sql`
    create or replace function holdfast.adopt_jobs(for_all boolean, in_most int, in_began timestamptz, inout at_queue text, inout at_kind text,
      inout at_priority int, inout at_time timestamptz, out moved int, out failed int, out problem text, out is_end boolean)
    language plpgsql ${steady} as $$
    declare
      wanted constant text[] := array(select limiter.tag from holdfast.limiter where for_all or not limiter.is_adopted);
      lane record;
      looked record;
    begin
      moved := 0;
      failed := 0;
      is_end := true;
      if cardinality(wanted) = 0 then
        return;
      end if;
      if at_priority < 5 then
        select ready.queue, ready.kind into lane from holdfast.ready where (ready.queue, ready.kind) >= (at_queue, at_kind) order by ready.queue, ready.kind limit 1;
      else
        select ready.queue, ready.kind into lane from holdfast.ready where (ready.queue, ready.kind) > (at_queue, at_kind) order by ready.queue, ready.kind limit 1;
      end if;
      while found and not array['k' || lane.kind, 'q' || lane.queue, 'f' || lane.queue] && wanted loop
        select ready.queue, ready.kind into lane from holdfast.ready where (ready.queue, ready.kind) > (lane.queue, lane.kind) order by ready.queue, ready.kind limit 1;
      end loop;
      if not found then
        if not for_all then
          perform holdfast.end_adoption(in_began);
        end if;
        return;
      end if;
      is_end := false;
      if (lane.queue, lane.kind) <> (at_queue, at_kind) then
        at_queue := lane.queue;
        at_kind := lane.kind;
        at_priority := 0;
        at_time := '-infinity';
      end if;
      loop
        select array_agg(next.place) filter (where next.is_stray) as strays, count(*)::int as count, max(next.priority)::int as priority,
          (array_agg(next.run_at))[count(*)::int] as run_at into looked
        from (
          select waiting.ctid as place, waiting.priority, waiting.run_at, ${isStray('waiting')} as is_stray
          from holdfast.ready as waiting
          where waiting.queue = lane.queue and waiting.kind = lane.kind and (waiting.priority, waiting.run_at) >= (at_priority::smallint, at_time)
          order by waiting.queue, waiting.kind, waiting.priority, waiting.run_at
          limit in_most
        ) as next;
        -- as many as that may be due at the same moment: the position must get beyond it
        exit when looked.count < in_most or (looked.priority, looked.run_at) <> (at_priority, at_time);
        in_most := 4 * in_most;
      end loop;
      begin
        moved := holdfast.send_to_gates(looked.strays);
      exception when others then
        -- one that can't be moved must not stop the others
        for number in 1 .. cardinality(looked.strays) loop
          begin
            moved := moved + holdfast.send_to_gates(looked.strays[number : number]);
          exception when others then
            failed := failed + 1;
            problem := sqlerrm;
          end;
        end loop;
      end;
      at_priority := case when looked.count < in_most then 5 else looked.priority end;
      at_time := coalesce(looked.run_at, at_time);
    end $$`

/** Counts leases that were claimed before a limit was set. The key of one with many jobs is not known, but it counts for the kind and the queue. */
const adoptLeases = sql`
    create or replace function holdfast.adopt_leases() returns int language plpgsql ${steady} as $$
    declare
      wanted constant text[] := array(select limiter.tag from holdfast.limiter where not limiter.is_adopted);
      moved int;
    begin
      if cardinality(wanted) = 0 then
        return 0;
      end if;
      update holdfast.lease as stray
      set gate_key = case when length(stray.done) = 1 then (select ${gateKeyOf('job')} from holdfast.job where job.id = stray.job_ids[1]) else ' ' end
      where stray.ctid = any(array(
        select lane.ctid from holdfast.lease as lane
        where lane.gate_key is null and array['k' || lane.kind, 'q' || lane.queue, 'f' || lane.queue] && wanted
        for no key update skip locked
      ));
      get diagnostics moved = row_count;
      return moved;
    end $$`

/**
 * Ends the adoption of limiters for which a walk that began at this time has come to its end. A claim that read the earlier limit may have
 * closed a gate in the meantime, so gates with waiting jobs get a hint. A locked limiter is left for the next time.
 */
const endAdoption = sql`
    create or replace function holdfast.end_adoption(in_began timestamptz) returns int language plpgsql ${steady} as $$
    declare
      oldest constant xid8 := pg_snapshot_xmin(pg_current_snapshot());
      number int;
    begin
      with ended as (
        update holdfast.limiter set is_adopted = true
        where limiter.ctid = any(array(
          select done.ctid from holdfast.limiter as done
          where not done.is_adopted and done.changed_txid < oldest and done.changed_at < in_began - interval '1 min'
          for no key update skip locked
        ))
        returning limiter.scope, limiter.name
      ),
      hinted as (
        insert into holdfast.gate_hint (queue, kind, key)
        select distinct gate.queue, gate.kind, gate.key
        from ended
        join holdfast.gate on case when ended.scope = 'kind' then gate.kind = ended.name else gate.queue = ended.name end
        where not gate.is_open and gate.next_at = 'infinity'
          and exists (select from holdfast.ready where ready.queue = gate.queue and ready.kind = gate.kind and ready.gate_key = gate.key)
        on conflict do nothing
      )
      select count(*) into number from ended;
      return number;
    end $$`

/** Defines how jobs get to gates that are newer than they are. */
export const gateAdoptionDefinitions = [
  statement<never>()('define.adopt_leases', () => adoptLeases),
  statement<never>()('define.end_adoption', () => endAdoption),
  statement<never>()('define.send_to_gates', () => sendToGates),
  statement<never>()('define.adopt_jobs', () => adoptJobs),
]
