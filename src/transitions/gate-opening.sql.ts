import { raw, sql, statement } from '../postgres/sql.ts'
import { gateKeyOf, steady, tags } from './gates.sql.ts'

/** Where the turns of a lane are: what the next open gate was served, or else the one that was served most. */
const turnOf = sql`
    create or replace function holdfast.turn_of(in_queue text, in_kind text) returns double precision language plpgsql ${steady} as $$
    begin
      return coalesce(
        (select gate.served from holdfast.gate where gate.queue = in_queue and gate.kind = in_kind and gate.is_open
          order by gate.queue, gate.kind, gate.is_open, gate.served limit 1),
        (select gate.served from holdfast.gate where gate.queue = in_queue and gate.kind = in_kind and not gate.is_open
          order by gate.queue desc, gate.kind desc, gate.is_open desc, gate.served desc limit 1), 0);
    end $$`

/** Opens gates that have hints or whose time has come. Returns where the next look for hints starts. */
const openGates = sql`
    create or replace function holdfast.open_gates(in_queues text[], in_kinds text[], in_after text, in_most int) returns text language plpgsql ${steady} as $$
    declare
      hinted record;
      mine tid[];
    begin
      -- keys in order, after the last one of the previous look, so that every hint has its turn
      select array_agg(found.queue) as queues, array_agg(found.kind) as kinds, array_agg(found.key) as keys, max(found.key) as last into hinted
      from (
        with recursive step (queue, kind, key, depth) as (
          select lane.queue, lane.kind, first.key, 1
          from (select distinct queue, kind from unnest(in_queues, in_kinds) as one (queue, kind)) as lane
          cross join lateral (
            select hint.key from holdfast.gate_hint as hint
            where hint.queue = lane.queue and hint.kind = lane.kind and hint.key > in_after order by hint.queue, hint.kind, hint.key limit 1
          ) as first
          union all
          select step.queue, step.kind, next.key, step.depth + 1
          from step
          cross join lateral (
            select hint.key from holdfast.gate_hint as hint
            where hint.queue = step.queue and hint.kind = step.kind and hint.key > step.key order by hint.queue, hint.kind, hint.key limit 1
          ) as next
          where step.depth < in_most
        )
        select * from step limit 4 * in_most
      ) as found;
      if hinted.keys is not null then
        insert into holdfast.gate (queue, kind, key)
        select * from unnest(hinted.queues, hinted.kinds, hinted.keys) as one (queue, kind, key) order by 1, 2, 3
        on conflict do nothing;
        mine := array(
          select own.place from unnest(hinted.queues, hinted.kinds, hinted.keys) as one (queue, kind, key)
          cross join lateral (
            select gate.ctid as place from holdfast.gate where gate.queue = one.queue and gate.kind = one.kind and gate.key = one.key
            for update skip locked
          ) as own
        );
        with told as (
          delete from holdfast.gate_hint as hint using holdfast.gate
          where gate.ctid = any(mine) and hint.queue = gate.queue and hint.kind = gate.kind and hint.key = gate.key
          returning hint.queue, hint.kind, hint.key, hint.held_until
        )
        update holdfast.gate
        set is_open = true, used_at = now(), held_until = greatest(gate.held_until, (
            select max(told.held_until) from told where told.queue = gate.queue and told.kind = gate.kind and told.key = gate.key
          )),
          -- a gate that was idle does not catch up on turns that it did not want
          served = case when gate.is_open then gate.served else greatest(gate.served, holdfast.turn_of(gate.queue, gate.kind)) end
        where gate.ctid = any(mine);
      end if;
      update holdfast.gate set is_open = true
      where gate.ctid = any(array(
        select due.place from unnest(in_queues, in_kinds) as lane (queue, kind)
        cross join lateral (
          select later.ctid as place from holdfast.gate as later
          where later.queue = lane.queue and later.kind = lane.kind and not later.is_open and later.next_at < 'infinity' and later.next_at <= now()
          order by later.queue, later.kind, later.next_at limit in_most for update skip locked
        ) as due
      ));
      return case when cardinality(hinted.keys) >= in_most then hinted.last else '' end;
    end $$`

/** Whether a gate key is not the one that a job should have. A fair queue has the tenant before the space, others have nothing. */
const isStray = (row: string) =>
  raw(`(${row}.gate_key is null or ('f' || lane.queue = any(${tags})) = (${row}.gate_key like ' %'))`)

/**
 * Sends jobs that were queued or claimed before a limit was set to their gates, at most so many, and returns how many. A limiter counts as done
 * once nothing is left and every transaction that is older than it has ended.
 */
const adoptJobs = sql`
    create or replace function holdfast.adopt_jobs(in_most int) returns int language plpgsql ${steady} as $$
    declare
      oldest constant xid8 := pg_snapshot_xmin(pg_current_snapshot());
      owed constant text[] := array(select limiter.tag from holdfast.limiter where not limiter.is_adopted);
      moved int := 0;
      more int;
    begin
      if cardinality(owed) = 0 then
        return 0;
      end if;
      update holdfast.ready as stray
      set gate_key = ${gateKeyOf('job')}
      from (
        with recursive lane (queue, kind) as (
          (select ready.queue, ready.kind from holdfast.ready order by ready.queue, ready.kind limit 1)
          union all
          select next.queue, next.kind from lane
          cross join lateral (
            select ready.queue, ready.kind from holdfast.ready where (ready.queue, ready.kind) > (lane.queue, lane.kind) order by ready.queue, ready.kind limit 1
          ) as next
        )
        select own.place, own.job_id
        from lane
        cross join lateral (
          select waiting.ctid as place, waiting.job_id from holdfast.ready as waiting
          where waiting.queue = lane.queue and waiting.kind = lane.kind and ${isStray('waiting')}
          limit in_most
          for update skip locked
        ) as own
        where array['k' || lane.kind, 'q' || lane.queue, 'f' || lane.queue] && owed
        limit in_most
      ) as found
      cross join lateral (select * from holdfast.job where job.id = found.job_id limit 1) as job
      where stray.ctid = found.place;
      get diagnostics moved = row_count;
      -- the key of a lease of many jobs is not known, but it counts for the kind and the queue
      update holdfast.lease as stray
      set gate_key = case when length(stray.done) = 1 then (select ${gateKeyOf('job')} from holdfast.job where job.id = stray.job_ids[1]) else ' ' end
      where stray.ctid = any(array(
        select lane.ctid from holdfast.lease as lane
        where lane.gate_key is null and array['k' || lane.kind, 'q' || lane.queue, 'f' || lane.queue] && owed
        for no key update skip locked
      ));
      get diagnostics more = row_count;
      if moved + more = 0 then
        -- one that is locked is left for the next time
        update holdfast.limiter set is_adopted = true
        where limiter.ctid = any(array(
          select done.ctid from holdfast.limiter as done
          where not done.is_adopted and done.tag = any(owed) and done.changed_txid < oldest
          for no key update skip locked
        ));
      end if;
      return moved + more;
    end $$`

/** Defines how gates open, and how jobs get to them. */
export const gateOpeningDefinitions = [
  statement<never>()('define.turn_of', () => turnOf),
  statement<never>()('define.open_gates', () => openGates),
  statement<never>()('define.adopt_jobs', () => adoptJobs),
]
