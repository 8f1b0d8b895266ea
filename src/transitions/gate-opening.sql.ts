import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { isOfTenant, steady } from './gates.sql.ts'

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

/** How many hints one claim deletes. What is left opens their gates once more, which costs a look. */
const mostHints = raw('10000')

/** A gate that was idle does not catch up on turns that it did not want. */
const servedOnOpening = raw('greatest(gate.served, holdfast.turn_of(gate.queue, gate.kind))')

/** The next keys that have hints, lane by lane, one look at the index for each. */
const hintedKeys = (who: Sql, which: Sql) => sql`
        select array_agg(found.queue) as queues, array_agg(found.kind) as kinds, array_agg(found.key) as keys,
          -- of the lanes in which there may be more
          min(found.key) filter (where found.depth = per_lane) as last
        into hinted
        from (
          with recursive step (queue, kind, tenant, key, depth) as (
            select lane.queue, lane.kind, who.tenant, in_after collate "C", 0
            from (select distinct queue, kind from unnest(in_queues, in_kinds) as one (queue, kind)) as lane
            cross join ${who}
            union all
            select step.queue, step.kind, step.tenant, next.key, step.depth + 1
            from step
            cross join lateral (
              select hint.key from holdfast.gate_hint as hint
              where hint.queue = step.queue and hint.kind = step.kind and hint.key > step.key and ${which} order by hint.queue, hint.kind, hint.key limit 1
            ) as next
            where step.depth < per_lane
          )
          select * from step where step.depth > 0
        ) as found;`

/**
 * Opens gates that have hints or whose time has come. Returns where the next look for hints starts: keys are looked at in order, after the last
 * one of the previous look, so that every hint has its turn.
 */
const openGates = sql`
    create or replace function holdfast.open_gates(in_queues text[], in_kinds text[], in_tenant text, in_after text, in_most int) returns text language plpgsql ${steady} as $$
    declare
      per_lane constant int := greatest(1, least(in_most, 4 * in_most / greatest(1, cardinality(in_queues))));
      hinted record;
      mine record;
    begin
      if in_tenant is null then
        ${hintedKeys(raw(`(values (''::text)) as who (tenant)`), raw('true'))}
      else
        -- hints of others are looked at by whoever may take their jobs
        ${hintedKeys(raw(`unnest(array['', in_tenant]) as who (tenant)`), isOfTenant('hint.key', 'step.tenant'))}
      end if;
      if hinted.keys is not null then
        insert into holdfast.gate (queue, kind, key)
        select * from unnest(hinted.queues, hinted.kinds, hinted.keys) as one (queue, kind, key) order by 1, 2, 3
        on conflict do nothing;
        select array_agg(own.place) as places, array_agg(own.queue) as queues, array_agg(own.kind) as kinds, array_agg(own.key) as keys into mine
        from unnest(hinted.queues, hinted.kinds, hinted.keys) as one (queue, kind, key)
        cross join lateral (
          select gate.ctid as place, gate.queue, gate.kind, gate.key from holdfast.gate
          where gate.queue = one.queue and gate.kind = one.kind and gate.key = one.key
          for update skip locked
        ) as own;
        with told as (
          delete from holdfast.gate_hint as hint
          where hint.ctid = any(array(
            select known.place from unnest(mine.queues, mine.kinds, mine.keys) as one (queue, kind, key)
            cross join lateral (
              select hint.ctid as place from holdfast.gate_hint as hint
              where hint.queue = one.queue and hint.kind = one.kind and hint.key = one.key
              order by hint.queue, hint.kind, hint.key, hint.txid
            ) as known
            limit ${mostHints}
          ))
          returning hint.queue, hint.kind, hint.key, hint.held_until
        ),
        holding as materialized (
          select told.queue, told.kind, told.key, max(told.held_until) as until from told where told.held_until is not null group by told.queue, told.kind, told.key
        )
        update holdfast.gate
        set is_open = true, used_at = now(), held_until = greatest(gate.held_until, (
            select holding.until from holding where holding.queue = gate.queue and holding.kind = gate.kind and holding.key = gate.key
          )),
          served = case when gate.is_open then gate.served else ${servedOnOpening} end
        where gate.ctid = any(mine.places);
      end if;
      update holdfast.gate set is_open = true, served = ${servedOnOpening}
      where gate.ctid = any(array(
        select due.place from unnest(in_queues, in_kinds) as lane (queue, kind)
        cross join lateral (
          select later.ctid as place from holdfast.gate as later
          where later.queue = lane.queue and later.kind = lane.kind and not later.is_open and later.next_at < 'infinity' and later.next_at <= now()
          order by later.queue, later.kind, later.next_at limit in_most for update skip locked
        ) as due
      ));
      return coalesce(hinted.last, '');
    end $$`

/** Defines how gates open. */
export const gateOpeningDefinitions = [
  statement<never>()('define.turn_of', () => turnOf),
  statement<never>()('define.open_gates', () => openGates),
]
