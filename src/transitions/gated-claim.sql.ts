import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { batchesOf, claimOf, tellingAll } from './claim.sql.ts'
import { isSuspect } from './suspect.sql.ts'

/**
 * Picks the due jobs of these lanes that their gates let through, and locks them. `is_more`: gates are left that it did not look at, or that
 * another claim holds. `due_ms`: when the next gate opens by itself. See the argument in gates.sql.ts.
 */
const pickGated = sql`
    create or replace function holdfast.pick_gated(in_queues text[], in_kinds text[], in_counts smallint[], in_most int, in_bytes double precision,
      in_tenant text, for_remote boolean, for_suspects boolean, in_after text, out places tid[], out after text, out is_more boolean, out due_ms double precision)
    language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
    declare
      lane record;
      whole record;
      whole_queue record;
      got record;
      room int;
      taken int;
      used double precision := 0;
      before record;
      by_lane int[] := array_fill(0, array[cardinality(in_queues)]);
    begin
      if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'holdfast: jobs with limits can be claimed only under the isolation level read committed, not %', current_setting('transaction_isolation')
          using errcode = 'invalid_transaction_state', hint = 'Reset default_transaction_isolation for this user and database.';
      end if;
      places := '{}';
      is_more := false;
      if not for_suspects then
        after := holdfast.open_gates(in_queues, in_kinds, in_tenant, in_after, greatest(20, least(in_most, 200)));
        is_more := after <> '';
      end if;
      for lane in
        select one.queue, one.kind, one.stage_count, one.number
        from unnest(in_queues, in_kinds, in_counts) with ordinality as one (queue, kind, stage_count, number)
        where not exists (select from holdfast.queue where queue.name = one.queue and queue.paused_at is not null)
      loop
        exit when cardinality(places) >= in_most;
        select * into whole from holdfast.limiter_room('kind', lane.kind);
        select * into whole_queue from holdfast.limiter_room('queue', lane.queue);
        is_more := is_more or whole.is_busy or whole_queue.is_busy;
        -- what this claim has picked in the same queue, or of the same kind, is in no lease yet
        select coalesce(sum(one.count) filter (where one.queue = lane.queue), 0) as queue, coalesce(sum(one.count) filter (where one.kind = lane.kind), 0) as kind
        into before from unnest(in_queues, in_kinds, by_lane) as one (queue, kind, count);
        room := least(in_most - cardinality(places), whole.room - before.kind, whole_queue.room - before.queue);
        due_ms := least(due_ms, case when whole.tokens < 1 then (1 - whole.tokens) * whole.token_ms end,
          case when whole_queue.tokens < 1 then (1 - whole_queue.tokens) * whole_queue.token_ms end);
        continue when room <= 0;
        if for_suspects then
          select * into got from holdfast.pick_suspect(lane.queue, lane.kind, lane.stage_count, room, in_tenant, for_remote);
        else
          select * into got from holdfast.pick_lane(lane.queue, lane.kind, lane.stage_count, room, used, in_bytes, in_tenant, for_remote);
        end if;
        taken := cardinality(got.places);
        places := places || got.places;
        used := used + got.bytes;
        by_lane[lane.number] := taken;
        is_more := is_more or got.is_more;
        if taken > 0 and whole.tokens is not null then
          perform holdfast.spend_tokens('kind', lane.kind, whole.tokens - taken);
        end if;
        if taken > 0 and whole_queue.tokens is not null then
          perform holdfast.spend_tokens('queue', lane.queue, whole_queue.tokens - taken);
        end if;
        exit when got.is_cut;
      end loop;
      due_ms := least(due_ms, (
        select extract(epoch from min(first.next_at) - now()) * 1000
        from unnest(in_queues, in_kinds) as one (queue, kind)
        cross join lateral (
          select gate.next_at from holdfast.gate
          where gate.queue = one.queue and gate.kind = one.kind and not gate.is_open and gate.next_at < 'infinity'
          order by gate.queue, gate.kind, gate.next_at limit 1
        ) as first
      ));
    end $$`

/**
 * Claims jobs through their gates, and returns them as the ordinary claim does. The last row is about the look itself: whether to look again at
 * once (lease_size), where in the hints the next look starts (kind), and when a gate opens by itself (due_us, from now).
 */
const claimGated = sql`
    create or replace function holdfast.claim_gated(in_session bigint, in_queues text[], in_kinds text[], in_counts smallint[], in_most int,
      in_bytes double precision, in_deadlines jsonb, for_suspects boolean, in_after text)
    returns table (lease_id bigint, lease_size int, kind text, queue text, stage smallint, priority smallint, due_us bigint, ids text, slots text, tenants text,
      submitted text, attempts text, failures text, crashes text, parts text, inputs text, outputs text, trace text)
    language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
    #variable_conflict use_column
    declare
      picked record;
    begin
      if not exists (select from holdfast.session where session.id = in_session and session.ended_at is null) then
        return;
      end if;
      select * into picked from holdfast.pick_gated(in_queues, in_kinds, in_counts, in_most, in_bytes, null, false, for_suspects, in_after);
      if cardinality(picked.places) > 0 then
        return query ${claimOf({
          places: raw('picked.places'),
          holder: { sessionId: raw('in_session'), deadlineMs: raw('(in_deadlines -> kind ->> stage)::float8') },
          isGated: true,
          how: batchesOf,
        })};
      end if;
      lease_size := picked.is_more::int;
      kind := coalesce(picked.after, '');
      due_us := picked.due_ms * 1000;
      return next;
    end $$`

/** Whether the session holds a job that fulfils this condition on the row `job`. */
const holds = (which: Sql) => sql`exists (
          select
          from (
            select running.crashes, own.crash_budget
            from holdfast.running
            join holdfast.job as own on own.id = running.job_id
            where running.session_id = in_session
          ) as job
          where ${which}
        )`

const inRows = raw(`
  select id, kind, queue, tenant, stage, attempt, failures, crashes, priority, submitted_at, deadline_at, coalesce(input, own_input)::text, outputs, trace,
    in_session, lease_id, slot, lease_size
  from told`)

/** The same for a remote worker, in rows. */
const claimGatedRemote = sql`
    create or replace function holdfast.claim_gated_remote(in_session bigint, in_queues text[], in_kinds text[], in_counts smallint[], in_most int,
      in_bytes double precision, in_deadlines jsonb, in_tenant text, for_suspects boolean, in_after text)
    returns table (id uuid, kind text, queue text, tenant text, stage smallint, attempt int, failures smallint, crashes smallint, priority smallint,
      submitted_at timestamptz, deadline_at timestamptz, input text, outputs text, trace text, session_id bigint, lease_id bigint, slot int, size int)
    language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
    #variable_conflict use_column
    declare
      picked record;
    begin
      if not exists (select from holdfast.session where session.id = in_session and session.ended_at is null and session.lease_until > now())
        or exists (select from holdfast.drain where drain.session_id = in_session and not for_suspects)
        or (for_suspects and ${holds(raw('true'))}) or (not for_suspects and ${holds(isSuspect)}) then
        return;
      end if;
      select * into picked from holdfast.pick_gated(in_queues, in_kinds, in_counts, in_most, in_bytes, in_tenant, true, for_suspects, in_after);
      if cardinality(picked.places) > 0 then
        return query ${claimOf({
          places: raw('picked.places'),
          holder: { sessionId: raw('in_session'), deadlineMs: raw('(in_deadlines -> kind ->> stage)::float8') },
          isGated: true,
          how: { ...tellingAll, answer: inRows },
        })};
      end if;
      size := picked.is_more::int;
      kind := coalesce(picked.after, '');
      return next;
    end $$`

/** Defines the functions of the gated claim. */
export const gatedClaimDefinitions = [
  statement<never>()('define.pick_gated', () => pickGated),
  statement<never>()('define.claim_gated', () => claimGated),
  statement<never>()('define.claim_gated_remote', () => claimGatedRemote),
]
