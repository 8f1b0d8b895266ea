/**
 * Gates: how limits and fairness hold jobs back.
 *
 * A job to which a limit or fairness applies has a gate key in its row in `ready`. Jobs with the same queue, kind and gate key wait at one
 * gate, a row. Jobs without a gate key are claimed as if there were no gates, and no gate is ever looked at for them.
 *
 * The invariant: the open bits of the leases with a gate's key never exceed the limit that applied when the last of them was claimed. Nothing
 * counts holders: the leases are counted. So there is no counter that a crash could leave wrong; a settle, revive, cancel or release frees a
 * slot by what it writes anyway.
 * It holds because a lease with a gate key is created only by a claim that has locked the row of the gate (or the row of the limiter, for a
 * limit on all jobs of a kind or queue), and has counted in a statement that began after it had the lock. The claim is a plpgsql function,
 * in which each statement has its own snapshot: it sees every lease of whoever held the lock before, since locks are released after the
 * commit. That needs `read committed`; the function refuses to run under any other isolation level.
 *
 * The second invariant: a gate at which a due job waits and that has a free slot is open, or has a hint, or opens by itself at `next_at`.
 * Only the holder of the gate's lock closes it, and deletes its hints.
 *
 * What can meet, and what the second one finds:
 * - claim against claim, same gate: the second one skips the locked row, says that it did, and its worker looks again in a moment. Nothing
 *   ever waits for a gate. The same holds for the row of a limiter.
 * - claim against settle (finish, retry, advance, fail, release, revive, cancel): the count may miss bits that are being set, and find the gate
 *   full. The claim closes the gate. The settle's hint is committed with its bits: if a claim finds the hint, its count, which comes later,
 *   sees the bits; if not, the hint stays for the next one. So a hint is deleted only before the count, and a settle waits for nobody.
 * - claim against submit (or anything that queues a job): the same, with the row in `ready` in place of the bits. The claim closes an empty
 *   gate after it has looked for jobs in a statement that began after it deleted the hints.
 * - claim against cancel of a queued job: one of them gets the row in `ready`. The claim has locked it before it counts it as let through.
 * - claim against the end of its session, or an answer that is lost: the slots are held by a lease like any other, until it is revived or
 *   released. The limit is never exceeded by that; it is underused until then.
 * - claim against a change of the limit: the claim goes by the limit that it read after it had locked the gate. A lower limit takes nobody's
 *   lease away; the gate stays closed until fewer hold one. A change leaves a hint at every gate, so a higher one takes effect at once.
 * - a limit that is set while the ordinary claim runs: a claim whose snapshot is older takes jobs as before; they are counted from the moment
 *   at which their leases get a gate key (`adopting`). Jobs queued by transactions that are older than the limit have no gate key, and
 *   the ordinary claim leaves them alone from then on: until the last such transaction has ended, adopting is repeated.
 * - two claims that add the same gate: one waits for the other to commit, and finds its row. Gates are added in the order of their keys, by
 *   claims that hold no lock yet, so that they can't deadlock.
 * - a gate that is removed because nobody has used it for long, against a hint: the hint stays, and the next claim adds the gate again.
 * - a lost notification: polling finds the hint.
 *
 * What is left to the reaper: a gate that is closed although it should not be, which only a write by hand or a restore can cause.
 *
 * A zombie, that is, a process that ignores that it lost its lease, may still be executing while its successor runs. The limit is on leases.
 */
import { raw, type Sql, sql, statement } from '../postgres/sql.ts'
import { isNoSuspect, isSuspect } from './suspect.sql.ts'

const tags = 'array(select limiter.tag from holdfast.limiter)'

/** Whether a limiter applies to a row with a queue and a kind. The tags are read once per statement. */
export function isGated(lane: string): Sql {
  return raw(`(array['k' || ${lane}.kind, 'q' || ${lane}.queue, 'f' || ${lane}.queue] && ${tags})`)
}

/** The gate key of a job that is being queued: its tenant in a fair queue, a space, and the key of its limit; null if nothing applies to it. */
export function gateKeyOf(job: string): Sql {
  return raw(`case when array['f' || ${job}.queue] && ${tags} then ${job}.tenant || ' ' || coalesce(${job}.limit_key, '')
      when array['k' || ${job}.kind, 'q' || ${job}.queue] && ${tags} then ' ' || coalesce(${job}.limit_key, '') end`)
}

/** Leaves a hint when a job is queued at a gate, or leaves a lease that came through one. */
const hintDefinitions = [
  statement<never>()(
    'define.hint_queued',
    () => sql`
    create or replace function holdfast.hint_queued() returns trigger language plpgsql as $$
    begin
      insert into holdfast.gate_hint (queue, kind, key) values (new.queue, new.kind, new.gate_key) on conflict do nothing;
      return null;
    end $$`,
  ),
  statement<never>()(
    'define.ready_hints',
    () => sql`
    create or replace trigger ready_hints after insert or update of gate_key on holdfast.ready for each row when (new.gate_key is not null)
    execute function holdfast.hint_queued()`,
  ),
  statement<never>()(
    'define.hint_left',
    () => sql`
    create or replace function holdfast.hint_left() returns trigger language plpgsql as $$
    begin
      insert into holdfast.gate_hint (queue, kind, key) values (old.queue, old.kind, old.gate_key) on conflict do nothing;
      -- whoever frees a slot takes the next job, unless it is busy and another worker is idle
      if exists (select from holdfast.session where wants_wake and ended_at is null) and pg_notification_queue_usage() < 0.5 then
        perform pg_notify('holdfast_wake', '');
      end if;
      return null;
    end $$`,
  ),
  statement<never>()(
    'define.lease_hints',
    () => sql`
    create or replace trigger lease_hints after update or delete on holdfast.lease for each row when (old.gate_key is not null)
    execute function holdfast.hint_left()`,
  ),
]

/** Settings of all functions here: their plans must not depend on statistics. */
const steady = raw('set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off')

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

/** The tokens of a bucket now: it refills steadily, up to a full one. */
const tokensNow = sql`
    create or replace function holdfast.tokens_now(tokens double precision, refilled_at timestamptz, rate int, rate_ms double precision)
    returns double precision language sql stable as $$
      select least(rate, coalesce(tokens + greatest(0, extract(epoch from now() - refilled_at)) * 1000 * rate / rate_ms, rate))
    $$`

/**
 * How many jobs a limiter lets through now: null for any number, 0 also if another claim holds it. Locks it, then counts. \`tokens\` are those
 * that it has now, and \`token_ms\` is the time between two of them.
 */
const limiterRoom = sql`
    create or replace function holdfast.limiter_room(in_scope text, in_name text, out room int, out tokens double precision, out token_ms double precision, out is_busy boolean)
    language plpgsql ${steady} as $$
    declare
      own holdfast.limiter;
      held bigint;
    begin
      is_busy := false;
      if not exists (
        select from holdfast.limiter where limiter.scope = in_scope and limiter.name = in_name and (limiter.concurrency is not null or limiter.rate is not null)
      ) then
        return;
      end if;
      select * into own from holdfast.limiter where limiter.scope = in_scope and limiter.name = in_name for no key update skip locked;
      if not found then
        is_busy := true;
        room := 0;
        return;
      end if;
      if own.concurrency is not null and in_scope = 'kind' then
        select sum(length(lease.done) - bit_count(lease.done)) into held from holdfast.lease where lease.kind = in_name and lease.gate_key is not null;
      elsif own.concurrency is not null then
        select sum(length(lease.done) - bit_count(lease.done)) into held from holdfast.lease where lease.queue = in_name and lease.gate_key is not null;
      end if;
      room := greatest(0, own.concurrency - coalesce(held, 0));
      if own.rate is not null then
        tokens := holdfast.tokens_now(own.tokens, own.refilled_at, own.rate, own.rate_ms);
        token_ms := own.rate_ms / own.rate;
        room := least(room, floor(tokens)::int);
      end if;
    end $$`

/**
 * What a gate lets through, by the limit of its key: so many slots and tokens; null for any number. The caller has locked the gate, and calls
 * this in a statement of its own, so the leases are counted after the lock.
 */
const gateRoom = sql`
    create or replace function holdfast.gate_room(own holdfast.gate, out slots int, out tokens double precision, out token_ms double precision)
    language plpgsql ${steady} as $$
    declare
      most record;
    begin
      select coalesce(one.concurrency, every.key_concurrency) as concurrency, coalesce(one.rate, every.key_rate) as rate, coalesce(one.rate_ms, every.key_rate_ms) as rate_ms
      into most
      from (select 1) as once
      left join holdfast.limiter as every on every.scope = 'kind' and every.name = own.kind
      left join holdfast.key_limit as one on one.kind = own.kind and one.key = substr(own.key, strpos(own.key, ' ') + 1);
      if most.concurrency is not null then
        slots := greatest(0, most.concurrency - coalesce((
          select sum(length(lease.done) - bit_count(lease.done)) from holdfast.lease
          where lease.kind = own.kind and lease.queue = own.queue and lease.gate_key = own.key
        ), 0));
      end if;
      if most.rate is not null then
        tokens := holdfast.tokens_now(own.tokens, own.refilled_at, most.rate, most.rate_ms);
        token_ms := most.rate_ms / most.rate;
      end if;
    end $$`

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
          where job.queue = own.queue and job.kind = own.kind and job.gate_key = own.key and job.priority = level.priority and ${isNoSuspect}
          order by job.run_at limit 1
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

/** Takes up to \`room\` due jobs of a lane from \`ready\`' gates, gate by gate, the least served first. The rows are locked, not deleted. */
const pickLane = sql`
    create or replace function holdfast.pick_lane(in_queue text, in_kind text, in_count smallint, in_room int, in_tenant text, for_remote boolean, out places tid[], out is_more boolean)
    language plpgsql ${steady} as $$
    declare
      wide constant int := least(in_room, 200);
      shares constant jsonb := (select limiter.weights from holdfast.limiter where limiter.scope = 'queue' and limiter.name = in_queue);
      gates holdfast.gate[];
      weights double precision[];
      rest double precision;
      own holdfast.gate;
      has record;
      quota int;
      got tid[];
    begin
      places := '{}';
      is_more := false;
      gates := array(
        select mine from (
          select * from holdfast.gate
          where gate.queue = in_queue and gate.kind = in_kind and gate.is_open and (in_tenant is null or split_part(gate.key, ' ', 1) in ('', in_tenant))
          order by gate.queue, gate.kind, gate.is_open, gate.served
          limit wide
          for update skip locked
        ) as mine
      );
      weights := array(select coalesce((shares ->> split_part(one.key, ' ', 1))::double precision, 1) from unnest(gates) as one);
      rest := (select sum(weight) from unnest(weights) as one (weight));
      for number in 1 .. cardinality(gates) loop
        exit when cardinality(places) >= in_room;
        own := gates[number];
        select * into has from holdfast.gate_room(own);
        quota := ceil((in_room - cardinality(places)) * weights[number] / rest);
        rest := rest - weights[number];
        quota := case when own.held_until > now() then 0 else least(quota, has.slots, floor(has.tokens)::int) end;
        got := case when quota > 0 then array(
          select picked.place
          from generate_series(1, 4) as level (priority)
          cross join lateral (
            select job.ctid as place from holdfast.ready as job
            where job.queue = in_queue and job.kind = in_kind and job.gate_key = own.key and job.priority = level.priority and job.run_at <= now()
              and job.stage < in_count and ${isNoSuspect} and not (for_remote and job.is_part) and (in_tenant is null or job.tenant = in_tenant)
            order by job.run_at
            limit quota
            for update skip locked
          ) as picked
          limit quota
        ) else '{}' end;
        places := places || got;
        is_more := is_more or (quota > 0 and cardinality(got) = quota);
        perform holdfast.pass_gate(own, has.slots, has.tokens, has.token_ms, cardinality(got), weights[number], cardinality(got) < quota);
      end loop;
      is_more := cardinality(places) < in_room and (is_more or exists (
        select from holdfast.gate
        where gate.queue = in_queue and gate.kind = in_kind and gate.is_open and (in_tenant is null or split_part(gate.key, ' ', 1) in ('', in_tenant))
          and gate.key <> all(array(select one.key from unnest(gates) as one))
      ));
    end $$`

/** The same for suspects: finds one by its own index, and asks its gate. */
const pickSuspect = sql`
    create or replace function holdfast.pick_suspect(in_queue text, in_kind text, in_count smallint, in_room int, in_tenant text, for_remote boolean, out places tid[], out is_more boolean)
    language plpgsql ${steady} as $$
    declare
      waiting record;
      own holdfast.gate;
      has record;
    begin
      places := '{}';
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
            order by job.run_at
            limit 20
          ) as job
        ) as found
        order by found.gate_key, found.run_at
      loop
        exit when cardinality(places) >= in_room;
        insert into holdfast.gate (queue, kind, key) values (in_queue, in_kind, waiting.gate_key) on conflict do nothing;
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
        update holdfast.limiter set is_adopted = true where not limiter.is_adopted and limiter.tag = any(owed) and limiter.changed_txid < oldest;
      end if;
      return moved + more;
    end $$`

/** Defines the triggers and functions of gates. */
export const gateDefinitions = [
  ...hintDefinitions,
  ...Object.entries({
    turn_of: turnOf,
    open_gates: openGates,
    tokens_now: tokensNow,
    limiter_room: limiterRoom,
    gate_room: gateRoom,
    pass_gate: passGate,
    pick_lane: pickLane,
    pick_suspect: pickSuspect,
    adopt_jobs: adoptJobs,
  }).map(([name, body]) => statement<never>()(`define.${name}`, () => body)),
]
