import { raw, sql, statement } from '../postgres/sql.ts'
import { isFitting, isLight, weighing } from './claim-size.sql.ts'
import { inGateOrder, isAtGate, isOfTenant, steady } from './gates.sql.ts'
import { isNoSuspect, isSuspect } from './suspect.sql.ts'

/** Writes what a gate has let through, and whether it stays open. \`is_dry\`: it had no more jobs for this claim. */
const passGate = sql`
    create or replace function holdfast.pass_gate(own holdfast.gate, slots int, tokens double precision, token_ms double precision, taken int, weight double precision, is_dry boolean)
    returns void language plpgsql ${steady} as $$
    declare
      stays boolean := true;
      later timestamptz := 'infinity';
      turns int := taken;
    begin
      if own.held_until > now() then
        stays := false;
        later := own.held_until;
      elsif slots <= taken then
        stays := false;
      elsif tokens - taken < 1 then
        stays := false;
        later := now() + (1 - (tokens - taken)) * token_ms * interval '1 ms';
      elsif is_dry then
        -- priority by priority, or jobs scheduled for later would have to be passed over
        select coalesce(min(first.run_at), 'infinity') into later
        from generate_series(1, 4) as level (priority)
        cross join lateral (
          select job.run_at from holdfast.ready as job
          where job.queue = own.queue and job.kind = own.kind and ${isNoSuspect}
            and ${isAtGate({ key: 'own.key', priority: 'level.priority', until: `'infinity'` })}
          order by ${inGateOrder} limit 1
        ) as first;
        stays := later <= now();
        -- jobs are left that this worker can't take: others get their turn
        turns := greatest(taken, 1);
      end if;
      update holdfast.gate
      set is_open = stays, next_at = later, served = gate.served + turns / weight, tokens = pass_gate.tokens - taken,
        refilled_at = case when pass_gate.tokens is not null then now() end, used_at = now(),
        held_until = case when own.held_until > now() then own.held_until end
      where gate.queue = own.queue and gate.kind = own.kind and gate.key = own.key;
    end $$`

/**
 * Takes up to `in_room` due jobs of a lane from its gates, gate by gate, the least served first. The rows are locked, not deleted. `bytes` is
 * their size, which stays below `in_bytes` together with `in_used`; the first job that has a size is taken in any case. `is_cut`: jobs were
 * left because of their size. What is left does not count as let through, and its gate stays as open as it was.
 */
const pickLane = sql`
    create or replace function holdfast.pick_lane(in_queue text, in_kind text, in_count smallint, in_room int, in_used double precision, in_bytes double precision,
      in_tenant text, for_remote boolean, out places tid[], out bytes double precision, out is_cut boolean, out is_more boolean)
    language plpgsql ${steady} as $$
    declare
      wide constant int := least(in_room, 200);
      shares constant jsonb := (select limiter.weights from holdfast.limiter where limiter.scope = 'queue' and limiter.name = in_queue);
      own_gates tid[];
      gates holdfast.gate[];
      weights double precision[];
      rest double precision;
      are_held boolean;
      own holdfast.gate;
      has record;
      quota int;
      due tid[];
      are_light boolean;
      got tid[];
      got_bytes double precision;
    begin
      places := '{}';
      bytes := 0;
      is_cut := false;
      is_more := false;
      if in_tenant is not null and exists (select from holdfast.limiter where limiter.tag = 'f' || in_queue) then
        own_gates := array(
          select one.place from unnest(array['', in_tenant]) as who (tenant)
          cross join lateral (
            select gate.ctid as place from holdfast.gate
            where gate.queue = in_queue and gate.kind = in_kind and ${isOfTenant('gate.key', 'who.tenant')} and gate.is_open
            order by gate.queue, gate.kind, gate.key
          ) as one
        );
        gates := array(
          select mine from (
            select * from holdfast.gate where gate.ctid = any(own_gates) and gate.is_open order by gate.served limit wide for update skip locked
          ) as mine
        );
      else
        gates := array(
          select mine from (
            select * from holdfast.gate
            where gate.queue = in_queue and gate.kind = in_kind and gate.is_open
            order by gate.queue, gate.kind, gate.is_open, gate.served
            limit wide
            for update skip locked
          ) as mine
        );
      end if;
      weights := array(select coalesce((shares ->> split_part(one.key, ' ', 1))::double precision, 1) from unnest(gates) as one);
      rest := (select sum(weight) from unnest(weights) as one (weight));
      -- a hint that holds a gate back may have come after hints were looked at
      are_held := exists (select from holdfast.gate_hint as hint where hint.queue = in_queue and hint.kind = in_kind and hint.held_until is not null);
      for number in 1 .. cardinality(gates) loop
        exit when cardinality(places) >= in_room or is_cut;
        own := gates[number];
        if are_held then
          own.held_until := greatest(own.held_until, (
            select max(hint.held_until) from holdfast.gate_hint as hint
            where hint.queue = own.queue and hint.kind = own.kind and hint.key = own.key and hint.held_until is not null
          ));
        end if;
        select * into has from holdfast.gate_room(own);
        -- sums of fractions are not exact: never more than there is room for
        quota := ceil((in_room - cardinality(places)) * least(1, weights[number] / greatest(rest, weights[number])));
        rest := rest - weights[number];
        quota := case when own.held_until > now() then 0 else least(quota, has.slots, floor(has.tokens)::int) end;
        due := '{}';
        if quota > 0 then
          select coalesce(array_agg(picked.place), '{}'), bool_and(picked.is_light) into due, are_light
          from (
            select picked.place, picked.is_light
            from generate_series(1, 4) as level (priority)
            cross join lateral (
              select job.ctid as place, ${isLight} as is_light from holdfast.ready as job
              where job.queue = in_queue and job.kind = in_kind and ${isAtGate({ key: 'own.key', priority: 'level.priority', until: 'now()' })}
                and job.stage < in_count and ${isNoSuspect} and not (for_remote and job.is_part) and (in_tenant is null or job.tenant = in_tenant)
              order by ${inGateOrder}
              limit quota
              for update skip locked
            ) as picked
            limit quota
          ) as picked;
        end if;
        got := due;
        got_bytes := 0;
        if cardinality(due) > 0 and not are_light then
          select coalesce(array_agg(weighed.place), '{}'), coalesce(max(weighed.bytes_so_far), 0) into got, got_bytes
          from (${weighing(raw('due'))}
          ) as weighed
          where ${isFitting(raw('in_used + pick_lane.bytes + weighed.bytes_so_far'), raw('in_bytes'))};
        end if;
        is_cut := cardinality(got) < cardinality(due);
        places := places || got;
        bytes := bytes + got_bytes;
        is_more := is_more or (quota > 0 and cardinality(due) = quota);
        perform holdfast.pass_gate(own, has.slots, has.tokens, has.token_ms, cardinality(got), weights[number], cardinality(due) < quota and not is_cut);
      end loop;
      is_more := is_cut or cardinality(places) < in_room and (is_more or case
        when own_gates is not null then cardinality(own_gates) > cardinality(gates)
        else exists (
          select from holdfast.gate
          where gate.queue = in_queue and gate.kind = in_kind and gate.is_open and gate.key <> all(array(select one.key from unnest(gates) as one))
        ) end);
    end $$`

/** The same for suspects: finds one by its own index, and asks its gate. A suspect runs alone, so its size does not matter. */
const pickSuspect = sql`
    create or replace function holdfast.pick_suspect(in_queue text, in_kind text, in_count smallint, in_room int, in_tenant text, for_remote boolean, out places tid[], out bytes double precision,
      out is_cut boolean, out is_more boolean)
    language plpgsql ${steady} as $$
    declare
      waiting record;
      own holdfast.gate;
      has record;
    begin
      places := '{}';
      bytes := 0;
      is_cut := false;
      is_more := false;
      for waiting in
        select distinct on (found.gate_key) found.gate_key, found.place
        from (
          select job.gate_key, job.ctid as place, job.run_at
          from generate_series(1, 4) as level (priority)
          cross join lateral (
            select job.gate_key, job.ctid, job.run_at from holdfast.ready as job
            where job.queue = in_queue and job.kind = in_kind and job.priority = level.priority and job.run_at <= now() and job.gate_key is not null
              and job.stage < in_count and ${isSuspect} and not (for_remote and job.is_part) and (in_tenant is null or job.tenant = in_tenant)
              -- suspects at a full gate hide no others
              and holdfast.has_room(in_queue, in_kind, job.gate_key)
            order by job.run_at
            limit 20
          ) as job
        ) as found
        order by found.gate_key, found.run_at
      loop
        exit when cardinality(places) >= in_room;
        -- if the gate is missing, the hint that was left with the job will add it
        select * into own from holdfast.gate where gate.queue = in_queue and gate.kind = in_kind and gate.key = waiting.gate_key for update skip locked;
        continue when not found or own.held_until > now();
        select * into has from holdfast.gate_room(own);
        continue when has.slots <= 0 or has.tokens < 1;
        perform from holdfast.ready as job where job.ctid = waiting.place and job.gate_key = waiting.gate_key and ${isSuspect} for update skip locked;
        continue when not found;
        places := places || waiting.place;
        update holdfast.gate set served = gate.served + 1, tokens = has.tokens - 1, refilled_at = case when has.tokens is not null then now() end, used_at = now()
        where gate.queue = in_queue and gate.kind = in_kind and gate.key = waiting.gate_key;
      end loop;
    end $$`

/** Defines which jobs gates let through. */
export const gatePickDefinitions = [
  statement<never>()('define.pass_gate', () => passGate),
  statement<never>()('define.pick_lane', () => pickLane),
  statement<never>()('define.pick_suspect', () => pickSuspect),
]
