-- Jobs. What a job is given is written once and never changes; where it is, is a narrow row that moves:
--   ready    it is queued, now or for later. A claim deletes the row.
--   lease    a worker has it. One row per claim, however many jobs that took; a bit per job says which have left it.
--   waiting  it has fanned out, and its barrier is open.
--   outcome  it is final.
-- A job is in exactly one of them. See docs/decisions/0030 and src/store/lease.sql.ts.
create table holdfast.job (
  id uuid primary key,
  submitted_at timestamptz not null,
  -- the barrier that it is an item of, and its place among the items
  barrier_id uuid,
  position int,
  crash_budget smallint not null,
  priority smallint not null check (priority between 1 and 4),
  -- it runs the `each` of its parent's stage, not a kind of its own
  is_part boolean not null default false,
  kind text not null,
  queue text not null,
  tenant text not null,
  item_key text,
  -- up to 500 bytes; a larger one stands in job_payload
  input json
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

create index job_item on holdfast.job (barrier_id, position) where barrier_id is not null;
-- A page of one tenant's jobs costs the same however many jobs others have. The tenant of those who know no tenants pays nothing.
create index job_tenant on holdfast.job (tenant, id) where tenant <> 'default';

create table holdfast.ready (
  job_id uuid primary key,
  run_at timestamptz not null,
  barrier_id uuid,
  attempt int not null default 0 check (attempt >= 0),
  stage smallint not null default 0 check (stage >= 0),
  failures smallint not null default 0,
  crashes smallint not null default 0,
  crash_budget smallint not null,
  priority smallint not null,
  is_part boolean not null default false,
  -- some items of an earlier stage failed within the threshold, so the job can end partial at best
  is_flawed boolean not null default false,
  kind text not null,
  queue text not null,
  tenant text not null
) with (
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.1
);

-- The claim's path: one range per lane (queue, kind, priority) that ends at now(), so that scheduled rows and rows of other lanes are never
-- visited. Without the id, the entries of one bulk submit are duplicates, which a b-tree folds into few bytes.
create index ready_lane on holdfast.ready (queue, kind, priority, run_at);
-- Suspects run alone in their process: a job that lost two workers, or that has one life left. This finds them among however many innocent ones.
create index ready_suspect on holdfast.ready (queue, kind, priority, run_at)
  where crashes >= 2 or (crashes = 1 and crash_budget <= 2);
create index ready_item on holdfast.ready (barrier_id) where barrier_id is not null;
create index ready_tenant on holdfast.ready (tenant, job_id) where tenant <> 'default';

-- What one claim took of one kind and stage. Its id is drawn at random: a number that counts up would be drawn again after a restore, and a
-- worker from before it would write about other jobs than its own.
create table holdfast.lease (
  id bigint primary key default floor(random() * 9007199254740991)::bigint,
  session_id bigint not null,
  claimed_at timestamptz not null default now(),
  deadline_at timestamptz not null,
  -- when the last of its jobs was due: those that are given back unharmed go back to that place in their queue
  due_at timestamptz not null,
  -- the range of its ids, so that the lease of a job is found without reading all of them
  low_id uuid not null,
  high_id uuid not null,
  stage smallint not null,
  kind text not null,
  queue text not null,
  -- null if its jobs are of several tenants
  tenant text,
  -- a bit per job, in the order of job_ids; set once the job has left this lease
  done bit varying not null,
  -- the barriers that its jobs are items of; null if they are items of none
  barrier_ids uuid[],
  job_ids uuid[] not null,
  -- null if all are first attempts, without failures, crashes and flaws, as most are
  attempts int[],
  failures smallint[],
  crashes smallint[],
  flawed boolean[]
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

alter table holdfast.lease alter column job_ids set storage external;
create index lease_session on holdfast.lease (session_id);

create table holdfast.waiting (
  job_id uuid primary key,
  since timestamptz not null default now(),
  barrier_id uuid,
  attempt int not null,
  stage smallint not null,
  failures smallint not null,
  crashes smallint not null,
  is_flawed boolean not null
);

create index waiting_item on holdfast.waiting (barrier_id) where barrier_id is not null;

create table holdfast.outcome (
  job_id uuid primary key,
  finished_at timestamptz not null,
  barrier_id uuid,
  attempt int not null,
  stage smallint not null,
  failures smallint not null,
  crashes smallint not null,
  is_flawed boolean not null,
  state text not null,
  error json
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

-- What went wrong is looked for often and is rare; what went well is found by id.
create index outcome_trouble on holdfast.outcome (state, job_id) where state <> 'succeeded';
create index outcome_item on holdfast.outcome (barrier_id, state) where barrier_id is not null;

-- Every attempt that is held: the leases, a row per job that has not left.
create view holdfast.running as
select lease.id as lease_id, (held.number - 1)::int as slot, length(lease.done) as size, held.job_id, lease.session_id, lease.claimed_at,
  lease.deadline_at, lease.due_at, lease.low_id, lease.high_id, lease.kind, lease.queue, lease.stage, lease.barrier_ids,
  coalesce(held.attempt, 1) as attempt, coalesce(held.failures, 0::smallint) as failures, coalesce(held.crashes, 0::smallint) as crashes,
  coalesce(held.is_flawed, false) as is_flawed
from holdfast.lease
cross join lateral unnest(lease.job_ids, lease.attempts, lease.failures, lease.crashes, lease.flawed)
  with ordinality as held (job_id, attempt, failures, crashes, is_flawed, number)
where get_bit(lease.done, held.number::int - 1) = 0;

-- Larger inputs and what else a job brings.
create table holdfast.job_payload (
  job_id uuid primary key,
  input json,
  meta json,
  -- the trace that the submit was part of, as W3C traceparent
  trace text
);

create table holdfast.stage_output (
  job_id uuid not null,
  stage smallint not null,
  name text not null,
  attempt int not null,
  at timestamptz not null default now(),
  output json,
  primary key (job_id, stage)
);

create table holdfast.job_progress (
  job_id uuid primary key,
  attempt int not null,
  stage smallint not null,
  done double precision not null,
  total double precision,
  note text,
  at timestamptz not null default now()
) with (fillfactor = 70);

create table holdfast.job_key (
  tenant text not null,
  key text not null,
  job_id uuid not null,
  fingerprint text not null,
  primary key (tenant, key)
);

create table holdfast.kind (
  -- whose it is: a kind that a worker registers with the key of a tenant decides nothing about the jobs of others. The empty name stands for
  -- all tenants. No tenant can have it, and it sorts first, as the rule that applies first
  tenant text not null default '',
  name text not null,
  queue text not null,
  priority smallint not null,
  crash_budget smallint not null,
  stages json not null,
  seen_at timestamptz not null default now(),
  primary key (tenant, name)
);

-- Finds kinds that nobody has served for long.
create index kind_seen_at on holdfast.kind (seen_at);

-- A queue has a row only once somebody paused it.
create table holdfast.queue (
  name text primary key,
  paused_at timestamptz,
  paused_by text,
  pause_reason text
);

-- One live worker process. Its lease covers all its attempts.
create table holdfast.session (
  id bigint generated always as identity primary key,
  started_at timestamptz not null default now(),
  heartbeat_at timestamptz not null default now(),
  lease_until timestamptz not null,
  lost_after interval not null,
  ended_at timestamptz,
  -- when the server that holds the session's advisory lock was started; null while it holds none.
  -- A server started later cannot know of the lock, so its absence there proves nothing.
  locked_on timestamptz,
  wants_wake boolean not null default false,
  pid int not null,
  host text not null,
  supervisor text,
  version text not null,
  kinds text[] not null,
  queues text[] not null,
  concurrency int not null,
  ended_by text,
  -- the signal or exit code of its process, as its supervisor saw it
  exit text,
  -- when its worker was heard of again after the session had been ended, and when the crashes counted against its jobs were taken back
  came_back_at timestamptz,
  cleared_at timestamptz,
  -- what it says of itself with each heartbeat: a process that beats may still do nothing, and that has to be seen from outside.
  -- Whether it claims jobs; not so while it drains
  is_claiming boolean not null default true,
  -- how many handlers it runs, of jobs that it holds and of jobs that were taken from it and whose handlers are about to end
  busy int not null default 0,
  -- how long its event loop has not turned
  blocked_ms int not null default 0,
  -- handlers that were told to end and did not: how many, and the first of them
  unresponsive int not null default 0,
  unresponsive_handlers json,
  -- for a worker that speaks HTTP, whatever a server needs to serve its next request: the kinds that it serves, with their rules;
  -- null for a worker that is connected to the database itself
  remote json,
  -- which key opened it: to all others it does not exist
  owner text,
  -- the only tenant whose jobs it may claim; null for all
  tenant text
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

create index session_living on holdfast.session (id) where ended_at is null;
-- Counts the living sessions of a tenant, and finds those of a key.
create index session_living_tenant on holdfast.session (tenant) where ended_at is null and tenant is not null;
create index session_living_owner on holdfast.session (owner) where ended_at is null and owner is not null;
create index session_came_back on holdfast.session (id) where came_back_at is not null and cleared_at is null;

-- Writes that came too late and were refused: for whoever asks later why.
create table holdfast.refusal (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  job_id uuid not null,
  attempt int not null,
  session_id bigint not null,
  write text not null
);

create index refusal_job on holdfast.refusal (job_id);

-- Who runs the clockwork. One row; a term is never used twice.
create table holdfast.leader (
  is_only boolean primary key default true check (is_only),
  term bigint not null,
  holder text not null,
  acquired_at timestamptz not null,
  renewed_at timestamptz not null,
  lease_until timestamptz not null,
  swept_at timestamptz,
  sweep_ms double precision,
  -- since when somebody has led without a gap: before that, sessions could not renew their leases either
  steady_since timestamptz not null default '-infinity'
) with (fillfactor = 50);

-- Which worker claims nothing until it is empty, so that the suspects of a kind get their turn. One per kind.
create table holdfast.drain (
  queue text not null,
  kind text not null,
  session_id bigint not null,
  -- a worker that no longer looks loses its place
  renewed_at timestamptz not null default now(),
  primary key (queue, kind)
) with (fillfactor = 50);

-- Outcomes that the database refused in every form: kept here with the reason, and tried again, while their jobs wait without being run.
-- See docs/decisions/0023.
create table holdfast.parked_outcome (
  job_id uuid primary key,
  attempt integer not null,
  session_id bigint not null,
  -- as JSON text: what is refused may be the JSON itself
  outcome text not null,
  reason text not null,
  tries integer not null default 0,
  parked_at timestamptz not null default now(),
  next_at timestamptz not null default now()
);

create index parked_outcome_due on holdfast.parked_outcome (next_at);

-- What joins a fan-out. The items are the ledger; the counters are a cache of it, written with each item's settle.
create table holdfast.barrier (
  id uuid primary key,
  job_id uuid not null,
  stage smallint not null,
  tenant text not null,
  opened_at timestamptz not null default now(),
  -- all items are there: the total stands
  sealed_at timestamptz,
  -- its job waits for it; while it is not armed, nothing fires
  armed_at timestamptz,
  -- its continuation was fired; a redo clears this, and it may fire again
  joined_at timestamptz,
  -- too many items failed: the rest is cancelled
  stopped_at timestamptz,
  expires_at timestamptz,
  -- how often the expiry was put off because workers of its items had died
  extended smallint not null default 0,
  moved_at timestamptz not null default now(),
  total int,
  succeeded int not null default 0,
  failed int not null default 0,
  cancelled int not null default 0,
  -- how many failed items are tolerated, as a count and as a share of the total; null for none
  tolerate_count int,
  tolerate_share double precision,
  -- why its producer gave up, if it did so after it had given items: there may be fewer of them than were meant
  short json,
  unique (job_id, stage)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The reaper's path: barriers that still have something to do.
create index barrier_open on holdfast.barrier (id) where joined_at is null;

-- The items of a fan-out are the ledger, and it has the last word before a join or a stop: the counters of a barrier may come from a
-- backup, or from a hand. These are volatile, so that each call has a snapshot of its own. Whoever calls them holds the barrier's row,
-- and so sees every settle that was counted before; the snapshot of its statement may be older than the wait for that row.

-- The items of a barrier that have not ended. Nothing here depends on how many have.
create function holdfast.live_items(barrier uuid)
returns table (job_id uuid, state text, attempt int, stage smallint, crashes smallint, session_id bigint, deadline_at timestamptz, lease_id bigint, slot int)
language plpgsql stable set enable_seqscan = off as $$
begin
  return query
  select ready.job_id, 'queued', ready.attempt, ready.stage, ready.crashes, null::bigint, null::timestamptz, null::bigint, null::int
  from holdfast.ready where ready.barrier_id = barrier
  union all
  select waiting.job_id, 'waiting', waiting.attempt, waiting.stage, waiting.crashes, null, null, null, null
  from holdfast.waiting where waiting.barrier_id = barrier
  union all
  select running.job_id, 'running', running.attempt, running.stage, running.crashes, running.session_id, running.deadline_at, running.lease_id, running.slot
  from holdfast.running
  where running.barrier_ids @> array[barrier]
    and (cardinality(running.barrier_ids) = 1 or (select job.barrier_id from holdfast.job where job.id = running.job_id) = barrier);
end $$;

-- Whether no item of a barrier is left to wait for.
create function holdfast.barrier_drained(barrier uuid) returns boolean language plpgsql volatile set enable_seqscan = off as $$
begin
  return not exists (select from holdfast.ready where ready.barrier_id = barrier)
    and not exists (select from holdfast.live_items(barrier));
end $$;

-- How many items of a barrier ended otherwise than well.
create function holdfast.barrier_flaws(barrier uuid) returns int language plpgsql volatile set enable_seqscan = off as $$
begin
  return (select count(*) from holdfast.outcome where outcome.barrier_id = barrier and outcome.state in ('failed', 'cancelled'));
end $$;

-- How the items of a barrier stand.
create function holdfast.barrier_ledger(barrier uuid, out live int, out succeeded int, out failed int, out cancelled int)
language plpgsql volatile set enable_seqscan = off as $$
begin
  select (select count(*) from holdfast.live_items(barrier)),
    count(*) filter (where outcome.state in ('succeeded', 'partial')), count(*) filter (where outcome.state = 'failed'),
    count(*) filter (where outcome.state = 'cancelled')
  into live, succeeded, failed, cancelled
  from holdfast.outcome
  where outcome.barrier_id = barrier;
end $$;

-- The bits of these slots, among so many.
create function holdfast.bits_of(size int, slots int[]) returns bit varying language sql immutable as $$
  select string_agg(case when taken.slot is null then '0' else '1' end, '' order by every.slot)::bit varying
  from generate_series(0, size - 1) as every (slot)
  left join (select distinct slot from unnest(slots) as one (slot)) as taken on taken.slot = every.slot
$$;

-- Barriers for executions that another system owns. The parts are the ledger; the count is a cache of it, written with each arrival.

-- A number that is never used twice, not even by a barrier that was removed and opened anew under the same id.
create sequence holdfast.owned_arming;

create table holdfast.owned_barrier (
  id text primary key check (length(id) between 1 and 300),
  -- whose it is; an owner is asked about an execution of that tenant, and of no other
  tenant text,
  arming bigint not null,
  opened_arming bigint not null,
  opened_at timestamptz not null default now(),
  armed_at timestamptz not null default now(),
  moved_at timestamptz not null default now(),
  -- when its count was last compared with the ledger
  checked_at timestamptz not null default now(),
  expires_at timestamptz,
  -- when its expiry is to be dealt with next: at first the expiry itself, then later and later while its owner does not answer
  due_at timestamptz,
  asks smallint not null default 0,
  -- the continuation was fired
  fired_at timestamptz,
  -- it expired with work left, and there was no owner to tell
  expired_at timestamptz,
  total int not null constraint owned_barrier_total check (total >= 0),
  arrived int not null default 0,
  -- tells whether it is opened again with the same parts
  parts_print text not null,
  owner text,
  execution text,
  -- the continuation: the job to submit, under an id that follows from the barrier and its arming
  job_id uuid not null,
  kind text not null,
  queue text not null,
  priority smallint not null check (priority between 1 and 4),
  crash_budget smallint not null,
  delay_ms double precision not null default 0,
  run_at timestamptz,
  input json,
  meta json,
  constraint owned_barrier_owner check ((owner is null) = (execution is null)),
  constraint owned_barrier_end check (fired_at is null or expired_at is null)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The reaper's path. The count stands in no index, so that an arrival is a HOT update of the row that all arrivals share.
create index owned_barrier_open on holdfast.owned_barrier (due_at) where fired_at is null and expired_at is null;

create table holdfast.owned_part (
  barrier_id text not null references holdfast.owned_barrier on delete cascade,
  name text not null check (length(name) between 1 and 300),
  arrived_at timestamptz,
  primary key (barrier_id, name)
) with (fillfactor = 70);

-- How many parts have arrived, by the ledger. Volatile, so that it has a snapshot of its own: a statement that has waited for the
-- barrier's row would otherwise count what it saw before the wait, and of two last arrivals neither would find itself the last.
create function holdfast.owned_arrived(barrier text) returns int language plpgsql volatile as $$
begin
  return (select count(*) from holdfast.owned_part where barrier_id = barrier and arrived_at is not null);
end $$;

-- What the database itself refuses, whoever writes: a fired barrier that is open again, an arming that goes back, an arrival undone.
create function holdfast.refuse_owned() returns trigger language plpgsql as $$
begin
  raise exception 'holdfast: a barrier never un-fires, its arming never goes back, and a part that arrived has arrived'
    using errcode = 'check_violation';
end $$;

create trigger owned_fence before update on holdfast.owned_barrier for each row
when (new.id <> old.id or new.arming < old.arming or (old.fired_at is not null and new.fired_at is distinct from old.fired_at))
execute function holdfast.refuse_owned();

create trigger owned_arrival before update on holdfast.owned_part for each row
when (old.arrived_at is not null and new.arrived_at is distinct from old.arrived_at)
execute function holdfast.refuse_owned();

-- Finds the barrier whose continuation a job is. An arrival changes no column of it, so it stays a HOT update.
create index owned_barrier_job on holdfast.owned_barrier (job_id);

-- What became of barriers that expired with work left and were removed: their owner marked the execution failed, or said that it had
-- ended or was gone. A barrier that is opened anew under the same id has nothing to do with them.
create table holdfast.owned_end (
  job_id uuid primary key,
  barrier_id text not null,
  arming bigint not null,
  tenant text,
  kind text not null,
  owner text,
  execution text,
  -- marked, ended or gone
  word text not null,
  total int not null,
  arrived int not null,
  opened_at timestamptz not null,
  armed_at timestamptz not null,
  expires_at timestamptz,
  asks smallint not null,
  is_rearmed boolean not null,
  ended_at timestamptz not null default now()
);

create index owned_end_at on holdfast.owned_end (ended_at);

-- The log of changes in partitions by time, so that what is old is dropped whole; and its groups of readers. Written in the transaction of
-- the change, never updated.
create sequence holdfast.event_seq;

-- txid stands before seq, because defaults are computed from left to right: a transaction has its id before it draws a number.
-- A reader relies on that: see src/events/tide.ts. An event that is about no job has no job_id, and no kind.
create table holdfast.event (
  txid xid8 not null default pg_current_xact_id(),
  seq bigint not null default nextval('holdfast.event_seq'),
  at timestamptz not null default now(),
  job_id uuid,
  session_id bigint,
  attempt int not null default 0,
  stage smallint not null default 0,
  type text not null,
  state text,
  kind text,
  tenant text not null,
  data json
) partition by range (at);

alter sequence holdfast.event_seq owned by holdfast.event.seq;
create index event_job on holdfast.event (job_id, seq);
create index event_order on holdfast.event (seq);
-- What went wrong lately, and what a session lost, is found at once however much has gone well since. Hardly a row of the log is in here.
create index event_recovery on holdfast.event (seq) where type in ('job.revived', 'job.quarantined');
create index event_lost on holdfast.event (session_id) where type = 'job.revived';

-- Which partitions there are and were. What was dropped tells an audit from when on events can be expected.
create table holdfast.event_partition (
  name text primary key,
  from_at timestamptz not null,
  to_at timestamptz not null,
  dropped_at timestamptz
);

-- Catches what no partition is laid for, so that a leader that was away for long never makes a settle fail.
create table holdfast.event_rest partition of holdfast.event default;

-- Lays partitions up to so far ahead. What the rest has caught for them is moved in. Made with the rights of its owner, so that a
-- process needs none to change the schema; a table in use is not waited for long, or writers would queue up behind us.
create function holdfast.lay_event_partitions(span interval, ahead interval) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$
declare
  begins timestamptz;
  ends timestamptz;
  part text;
begin
  perform pg_advisory_xact_lock(1212501060);
  loop
    select max(to_at) into begins from holdfast.event_partition;
    begins := coalesce(begins, date_trunc('hour', now()));
    exit when begins >= now() + ahead;
    ends := greatest(begins, date_trunc('hour', now())) + span;
    part := 'event_' || to_char(begins at time zone 'utc', 'YYYYMMDD"t"HH24MISSUS');
    execute format('create table holdfast.%I (like holdfast.event including defaults) with (autovacuum_vacuum_insert_scale_factor = 0.1)', part);
    lock table holdfast.event_rest in access exclusive mode;
    execute format('with moved as (delete from holdfast.event_rest where at >= %L and at < %L returning *)
      insert into holdfast.%I select * from moved', begins, ends, part);
    execute format('alter table holdfast.event attach partition holdfast.%I for values from (%L) to (%L)', part, begins, ends);
    insert into holdfast.event_partition (name, from_at, to_at) values (part, begins, ends)
      on conflict (name) do update set from_at = excluded.from_at, to_at = excluded.to_at, dropped_at = null;
    return next part;
  end loop;
end $$;

create table holdfast.event_group (
  name text primary key,
  -- null: all types
  types text[],
  -- whether it wants the events of the items of fan-outs, too: there may be millions of them
  items boolean not null default false,
  partitions smallint not null check (partitions between 1 and 64),
  created_at timestamptz not null default now()
);

-- A process that reads for a group. Its lease covers all cursors that it holds.
create table holdfast.event_reader (
  id uuid primary key,
  group_name text not null,
  host text not null,
  pid int not null,
  started_at timestamptz not null default now(),
  lease_until timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- How far a group has come in one partition of the jobs: everything up to seq is done. The term is the fence of its reader.
create table holdfast.event_cursor (
  group_name text not null references holdfast.event_group on delete cascade,
  partition smallint not null,
  seq bigint not null,
  term bigint not null default 0,
  reader_id uuid,
  -- how many readers died here; from the second on, events are read one by one until careful_until, to find which of them kills
  crashes smallint not null default 0,
  careful_until bigint not null default 0,
  wants_wake boolean not null default false,
  moved_at timestamptz not null default now(),
  -- the event that fails at this moment
  failing_seq bigint,
  failures smallint not null default 0,
  error text,
  primary key (group_name, partition)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- Events that a group could not handle, whole, so that they outlive the log.
create table holdfast.parked_event (
  group_name text not null references holdfast.event_group on delete cascade,
  seq bigint not null,
  partition smallint not null,
  event json not null,
  error text not null,
  failures smallint not null,
  parked_at timestamptz not null default now(),
  -- set by whoever wants it handled once more
  replay_at timestamptz,
  primary key (group_name, seq)
);

create index parked_event_replay on holdfast.parked_event (group_name, partition, seq) where replay_at is not null;

-- Drops partitions whose time is over and which every group has read, or which are older than the cap whoever has read them. A
-- cursor that stood in a dropped partition is moved up to the next event that is left: numbers and times are not in the same order, so
-- some with lower numbers than the highest that is dropped may be in later partitions. What a group still needs is named, and stays.
create function holdfast.drop_event_partitions(retention interval, cap interval)
returns table (name text, is_dropped boolean, unread_by text[])
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '200ms' as $$
declare
  part record;
  top bigint;
begin
  perform pg_advisory_xact_lock(1212501060);
  for part in
    select p.name, p.to_at from holdfast.event_partition as p
    where p.dropped_at is null and p.to_at < now() - least(retention, cap) order by p.to_at
  loop
    -- whoever still writes into it is waited for, or what they write could be dropped unread
    execute format('lock table holdfast.%I in share mode', part.name);
    execute format('select max(seq) from holdfast.%I', part.name) into top;
    select array_agg(distinct c.group_name) into unread_by from holdfast.event_cursor as c where c.seq < top;
    name := part.name;
    is_dropped := unread_by is null or part.to_at < now() - cap;
    if is_dropped then
      execute format('drop table holdfast.%I', part.name);
      update holdfast.event_cursor as c
      set seq = (select least(top, min(e.seq) - 1) from holdfast.event as e where e.seq > c.seq), term = c.term + 1
      where c.seq < top;
      update holdfast.event_partition as p set dropped_at = now() where p.name = part.name;
    end if;
    return next;
  end loop;
  delete from holdfast.event_rest where at < now() - cap;
end $$;

-- How far the log goes: the last number drawn; then, if it is another than is known, a transaction id; then the oldest one that
-- still runs. The order is the argument: see src/events/tide.ts. The next id to be given out would do as well as one of our own, but a
-- snapshot does not tell it: its xmax is one past the last that has *ended*. If somebody runs whom a reader might have to wait for,
-- `running` lists the ids that run in this database, where alone events are written; null if other users' sessions are hidden from us.
create function holdfast.event_mark(known bigint, out top bigint, out mark_txid xid8, out oldest_txid xid8, out running bigint[])
language plpgsql as $$
begin
  select case when is_called then last_value else 0 end into top from holdfast.event_seq;
  if top > known then
    select pg_current_xact_id() into mark_txid;
  end if;
  select pg_snapshot_xmin(pg_current_snapshot()) into oldest_txid;
  if mark_txid is null or oldest_txid < mark_txid then
    select case when coalesce(bool_and(is_shown), true) then coalesce(array_agg(txid) filter (where txid is not null), '{}') end into running
    from (
      select backend_xid::text::bigint as txid, query is distinct from '<insufficient privilege>' as is_shown
      from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()
      union all
      select transaction::text::bigint, true from pg_prepared_xacts where database = current_database()
    ) as writer;
  end if;
end $$;

-- Wakes readers, but only if one asked for it: every NOTIFY takes a lock that all commits share.
create function holdfast.wake_readers() returns trigger language plpgsql as $$
begin
  if exists (select from holdfast.event_cursor where wants_wake) then
    perform pg_notify('holdfast_event', '');
  end if;
  return null;
end $$;

create trigger event_wakes after insert on holdfast.event for each statement execute function holdfast.wake_readers();


select holdfast.lay_event_partitions(interval '3 days', interval '3 days');

-- Webhooks: where to, and every send as a row.

-- The end of the log, read after the transaction has its id: whoever sees that all transactions up to some id have ended then knows
-- that what it can't see begins behind that. See src/webhooks/planner.ts.
create function holdfast.place_in_order() returns bigint language plpgsql as $$
begin
  perform pg_current_xact_id();
  return (select case when is_called then last_value else 0 end from holdfast.event_seq);
end $$;

-- A uuid of version 7, so that ids sort by time.
create function holdfast.fresh_id() returns uuid language sql volatile as $$
  select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
    || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$;

create table holdfast.endpoint (
  id uuid primary key,
  tenant text not null,
  url text not null,
  types text[] not null,
  -- whether it wants those of the items of fan-outs, too
  items boolean not null,
  headers json not null,
  -- sealed; the old one is valid too until its time is over
  secret text not null,
  old_secret text,
  old_secret_until timestamptz,
  created_at timestamptz not null default now(),
  -- only events behind this place in the log are for it. A time would not do: that of an event is when its transaction began
  since_seq bigint not null default holdfast.place_in_order(),
  -- from where on it wants these types
  types_seq bigint not null default holdfast.place_in_order(),
  disabled_at timestamptz,
  disabled_why text,
  -- since when nothing has succeeded, although something was tried
  failing_since timestamptz,
  note text
);

create index endpoint_tenant on holdfast.endpoint (tenant, id);

-- The webhook of one job, given with its submit.
create table holdfast.job_webhook (
  job_id uuid primary key,
  url text not null,
  origin text not null,
  types text[] not null,
  headers json not null,
  secret text not null
);

create table holdfast.delivery (
  id uuid primary key default holdfast.fresh_id(),
  event_seq bigint not null,
  event_id text not null,
  type text not null,
  tenant text not null,
  job_id uuid,
  -- null for the webhook of a job
  endpoint_id uuid,
  -- what shares a receiver shares a lane: the id of the endpoint, or the origin of the job's URL
  lane text not null,
  state text not null,
  created_at timestamptz not null default now(),
  -- when it is due; while a sender has it, when that sender's time is over
  next_at timestamptz not null default now(),
  claimed_at timestamptz,
  -- how often it was claimed: the fence of a sender
  tries int not null default 0,
  -- since it was made or last replayed: how often it failed, and when first. It is given up some time after that
  failures smallint not null default 0,
  failed_at timestamptz,
  -- exactly what is sent, each time
  body text not null,
  status smallint,
  error text,
  excerpt text,
  ms int,
  ended_at timestamptz
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

-- Planned exactly once, however often the log is read.
create unique index delivery_event on holdfast.delivery (event_seq, coalesce(endpoint_id, '00000000-0000-0000-0000-000000000000'));
-- The sender's path: from tenant to tenant, from lane to lane of each, and in each lane what is due.
create index delivery_due_by_tenant on holdfast.delivery (tenant, lane, next_at) where state = 'pending';
create index delivery_dead on holdfast.delivery (id) where state = 'dead';
create index delivery_ended on holdfast.delivery (ended_at) where ended_at is not null;
create index delivery_endpoint on holdfast.delivery (endpoint_id, id) where endpoint_id is not null;
create index delivery_job on holdfast.delivery (job_id, id) where job_id is not null;


-- Who may come in over HTTP. Of a key only a hash is kept: whoever reads this table can't use what it holds.
create table holdfast.api_key (
  id uuid primary key,
  name text not null,
  hash bytea not null,
  -- null: all tenants
  tenant text,
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  -- roughly: written at most once a minute
  used_at timestamptz
);

-- One secret of this database, shared by all servers on it: what they hand out as a place in a list or in the log is sealed with it, so that
-- nobody can count or guess by it what others do.
create table holdfast.door (
  is_only boolean primary key default true check (is_only),
  secret bytea not null
);

insert into holdfast.door (secret)
values (decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));


create table holdfast.snapshot (
  job_id uuid not null,
  attempt int not null,
  at timestamptz not null default now(),
  -- the event that announced the settle
  event text not null,
  facts json not null,
  -- an attempt ends once
  primary key (job_id, attempt)
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

create index snapshot_at on holdfast.snapshot (at);

-- What each source of truth says about a job; null if none knows it. Every look-up goes by an index: a plan that was made while a table
-- was small must not read all of it when it is large. What is costly, or tells nothing of a moment that is past, is read only for
-- somebody who asks: ledgers, locks, workers, groups, deliveries.
create function holdfast.facts_of(wanted uuid, is_asked boolean) returns json language plpgsql stable
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off set timezone = 'UTC' as $$
declare
  most constant int := 20000;
  job record;
  last_session bigint;
  facts_events json;
  facts_session json;
  facts_workers json;
  facts_ahead int;
  facts_barriers json;
  facts_item json;
  facts_continues json;
  facts_groups json;
  facts_deliveries json;
  facts_writer json;
begin
  select status.* into job from holdfast.job_status as status where status.id = wanted;

  if is_asked or job.id is null then
    select json_build_object('id', barrier.id, 'tenant', barrier.tenant, 'kind', barrier.kind, 'total', barrier.total, 'arrived', barrier.arrived,
      'ledger', (
        select count(*) from (
          select from holdfast.owned_part as part where part.barrier_id = barrier.id and part.arrived_at is not null limit most + 1
        ) as few
      ),
      'openedAt', barrier.opened_at, 'armedAt', barrier.armed_at, 'isRearmed', barrier.arming > barrier.opened_arming,
      'expiresAt', barrier.expires_at, 'dueAt', barrier.due_at, 'asks', barrier.asks, 'firedAt', barrier.fired_at, 'expiredAt', barrier.expired_at,
      'owner', barrier.owner, 'execution', barrier.execution) into facts_continues
    from holdfast.owned_barrier as barrier where barrier.job_id = wanted
    order by barrier.armed_at desc limit 1;
  end if;
  if job.id is null and facts_continues is null then
    return null;
  end if;

  select json_agg(json_build_object('seq', last.seq, 'at', last.at, 'type', last.type, 'state', last.state, 'attempt', last.attempt,
      'stage', last.stage, 'sessionId', last.session_id, 'data', case when octet_length(last.data::text) <= 2000 then last.data end) order by last.seq),
    (array_agg(last.session_id order by last.seq desc) filter (where last.session_id is not null))[1] into facts_events, last_session
  from (
    select * from holdfast.event where event.job_id = wanted order by event.seq desc limit case when is_asked then 10 else 3 end
  ) as last;

  select json_build_object('id', session.id, 'startedAt', session.started_at, 'heartbeatAt', session.heartbeat_at, 'leaseUntil', session.lease_until,
    'lostAfterMs', extract(epoch from session.lost_after) * 1000, 'endedAt', session.ended_at, 'endedBy', session.ended_by,
    -- a server that was started after the lock was taken cannot know of it
    'canTellLock', session.locked_on is not distinct from pg_postmaster_start_time(),
    'isLocked', case when is_asked then exists (
      select from pg_locks
      where locktype = 'advisory' and classid = 1213156422 and objid = session.id::int::oid and objsubid = 2
        and database = (select oid from pg_database where datname = current_database())
    ) end,
    'isRemote', session.remote is not null, 'concurrency', session.concurrency, 'host', session.host, 'pid', session.pid, 'version', session.version) into facts_session
  from holdfast.session where session.id = coalesce(job.session_id, last_session);

  if is_asked and job.id is not null then
    select json_build_object('living', count(*) filter (where one.is_living), 'concurrency', coalesce(sum(one.concurrency) filter (where one.is_living), 0),
      'holding', sum(one.holding) filter (where one.is_living), 'lastSeenAt', max(one.heartbeat_at)) into facts_workers
    from (
      select session.heartbeat_at, session.concurrency, session.ended_at is null and session.lease_until > now() as is_living,
        case when session.ended_at is null then (
          select count(*) from (select from holdfast.running as held where held.session_id = session.id limit 1000) as few
        ) end as holding
      from (
        select * from holdfast.session as living where living.ended_at is null
        union all
        (select * from holdfast.session as ended where ended.ended_at is not null order by ended.id desc limit 1000)
      ) as session
      where session.kinds @> array[job.kind]
        and exists (select from unnest(session.kinds, session.queues) as served (kind, queue) where served.kind = job.kind and served.queue = job.queue)
        -- a remote worker runs no parts, and that of a tenant nothing of others: there is none, then, for this job
        and (session.remote is null or not job.is_part) and (session.tenant is null or session.tenant = job.tenant)
    ) as one;
  end if;

  if is_asked and job.run_at <= now() and job.session_id is null then
    -- each priority by itself: together they would be one range of the index, and all that is scheduled behind this job part of it
    select count(*) into facts_ahead from (
      select
      from generate_series(1, job.priority) as rank (priority)
      cross join lateral (
        select from holdfast.ready as other
        where other.queue = job.queue and other.kind = job.kind and other.priority = rank.priority
          and other.run_at < case when rank.priority < job.priority then now() else job.run_at end
        limit 1000
      ) as before
      limit 1000
    ) as few;
  end if;

  -- few jobs have one, and it is cheaper to look than to set out to count
  if exists (select from holdfast.barrier where barrier.job_id = wanted) then
    select json_agg(json_build_object('id', barrier.id, 'stage', barrier.stage, 'openedAt', barrier.opened_at, 'sealedAt', barrier.sealed_at,
      'armedAt', barrier.armed_at, 'joinedAt', barrier.joined_at, 'stoppedAt', barrier.stopped_at, 'expiresAt', barrier.expires_at,
      'extended', barrier.extended, 'movedAt', barrier.moved_at, 'total', barrier.total, 'succeeded', barrier.succeeded, 'failed', barrier.failed,
      'cancelled', barrier.cancelled, 'hasLive', exists (select from holdfast.live_items(barrier.id)),
      'ledger', case when is_asked and barrier.joined_at is null then (
        select json_build_object('queued', coalesce(sum(n) filter (where state = 'queued'), 0), 'running', coalesce(sum(n) filter (where state = 'running'), 0),
          'waiting', coalesce(sum(n) filter (where state = 'waiting'), 0), 'succeeded', coalesce(sum(n) filter (where state in ('succeeded', 'partial')), 0),
          'failed', coalesce(sum(n) filter (where state = 'failed'), 0), 'cancelled', coalesce(sum(n) filter (where state = 'cancelled'), 0),
          'isWhole', coalesce(bool_and(whole), true))
        from (
          select state, count(*) as n, sum(count(*)) over () <= most as whole from (
            select item.state from holdfast.live_items(barrier.id) as item limit most + 1
          ) as live group by state
          union all
          select state, count(*), sum(count(*)) over () <= most from (
            select item.state from holdfast.outcome as item where item.barrier_id = barrier.id limit most + 1
          ) as ended group by state
        ) as counted
      ) end,
      'stragglers', case when is_asked and barrier.joined_at is null then (
        select json_agg(json_build_object('id', late.job_id, 'key', item.item_key, 'state', late.state, 'attempt', late.attempt, 'crashes', late.crashes,
          'deadlineAt', late.deadline_at) order by late.deadline_at nulls last)
        from (
          select * from (select * from holdfast.live_items(barrier.id) limit 1000) as few
          order by few.deadline_at nulls last limit 5
        ) as late
        left join holdfast.job as item on item.id = late.job_id
      ) end) order by barrier.stage) into facts_barriers
    from holdfast.barrier where barrier.job_id = wanted;
  end if;

  if job.barrier_id is not null then
    select json_build_object('barrierId', job.barrier_id, 'position', job.position, 'isThere', barrier.id is not null, 'jobId', barrier.job_id,
      'stage', barrier.stage, 'total', barrier.total, 'succeeded', barrier.succeeded, 'failed', barrier.failed, 'cancelled', barrier.cancelled,
      'joinedAt', barrier.joined_at, 'stoppedAt', barrier.stopped_at, 'expiresAt', barrier.expires_at,
      'parentState', (select parent.state from holdfast.job_status as parent where parent.id = barrier.job_id)) into facts_item
    from (values (1)) as once (n)
    left join holdfast.barrier on barrier.id = job.barrier_id;
  end if;

  if is_asked and job.id is not null then
    select json_agg(json_build_object('name', reader.name, 'seq', reader.seq, 'wantedSeq', reader.wanted_seq, 'hasReader', reader.reader_id is not null,
      'readerUntil', reader.lease_until, 'movedAt', reader.moved_at, 'crashes', reader.crashes, 'failingSeq', reader.failing_seq,
      'failures', reader.failures, 'error', left(reader.error, 500), 'isParked', reader.is_parked) order by reader.name) into facts_groups
    from (
      select own.name, cursor.seq, cursor.reader_id, live.lease_until, cursor.moved_at, cursor.crashes, cursor.failing_seq, cursor.failures, cursor.error,
        exists (
          select from holdfast.event join holdfast.parked_event as parked on parked.group_name = own.name and parked.seq = event.seq
          where event.job_id = wanted
        ) as is_parked,
        case when own.name = 'webhooks' then greatest(
          (select max(event.seq) from holdfast.event join holdfast.job_webhook as hook on hook.job_id = event.job_id
            where event.job_id = wanted and event.type = any(hook.types)),
          (select max(event.seq) from holdfast.event join holdfast.endpoint on endpoint.tenant = event.tenant
            where event.job_id = wanted and endpoint.tenant = job.tenant and event.type = any(endpoint.types) and event.seq > endpoint.since_seq
              and (endpoint.items or job.barrier_id is null))
        ) else (
          select max(event.seq) from holdfast.event where event.job_id = wanted and (own.types is null or event.type = any(own.types))
        ) end as wanted_seq
      from holdfast.event_group as own
      join holdfast.event_cursor as cursor on cursor.group_name = own.name
        and cursor.partition = (uuid_hash(wanted) & 2147483647) % own.partitions
      left join holdfast.event_reader as live on live.id = cursor.reader_id
      limit 50
    ) as reader;

    select json_build_object('pending', count(*) filter (where sent.state = 'pending'), 'delivered', count(*) filter (where sent.state = 'delivered'),
      'dead', count(*) filter (where sent.state = 'dead'),
      'oldestPending', (array_agg(json_build_object('id', sent.id, 'type', sent.type, 'nextAt', sent.next_at, 'claimedAt', sent.claimed_at,
        'tries', sent.tries, 'failures', sent.failures, 'error', left(sent.error, 500), 'isOff', sent.is_off) order by sent.next_at)
        filter (where sent.state = 'pending'))[1],
      'lastDead', (array_agg(json_build_object('id', sent.id, 'type', sent.type, 'error', left(sent.error, 500), 'status', sent.status,
        'endedAt', sent.ended_at, 'isOff', sent.is_off) order by sent.ended_at desc) filter (where sent.state = 'dead'))[1]) into facts_deliveries
    from (
      select delivery.*, delivery.endpoint_id is not null and (endpoint.id is null or endpoint.disabled_at is not null) as is_off
      from (select * from holdfast.delivery where delivery.job_id = wanted order by delivery.id desc limit 1000) as delivery
      left join holdfast.endpoint on endpoint.id = delivery.endpoint_id
    ) as sent;

    select json_build_object('pid', writer.pid, 'since', writer.xact_start, 'application', writer.application_name) into facts_writer
    from pg_stat_activity as writer
    where writer.backend_xid is not null and writer.pid <> pg_backend_pid() and writer.datname = current_database()
    order by writer.xact_start limit 1;
  end if;

  return json_build_object(
    'at', now(),
    'job', case when job.id is not null then json_build_object('id', job.id, 'kind', job.kind, 'queue', job.queue, 'tenant', job.tenant, 'state', job.state,
      'stage', job.stage, 'attempt', job.attempt, 'failures', job.failures, 'crashes', job.crashes, 'crashBudget', job.crash_budget,
      'priority', job.priority, 'submittedAt', job.submitted_at, 'runAt', job.run_at, 'deadlineAt', job.deadline_at, 'sessionId', job.session_id,
      'finishedAt', job.finished_at, 'isFlawed', job.is_flawed, 'error', case when job.error is not null then
        json_build_object('code', job.error ->> 'code', 'message', left(job.error ->> 'message', 1000)) end) end,
    'kind', (select json_build_object('stages', json_array_length(kind.stages), 'queue', kind.queue, 'seenAt', kind.seen_at, 'tenant', nullif(kind.tenant, ''))
      from holdfast.kind where kind.tenant in ('', job.tenant) and kind.name = job.kind order by kind.tenant limit 1),
    'outputs', coalesce((select json_agg(json_build_object('stage', output.stage, 'name', output.name, 'attempt', output.attempt, 'at', output.at) order by output.stage)
      from holdfast.stage_output as output where output.job_id = wanted), '[]'),
    'progress', (select json_build_object('stage', progress.stage, 'attempt', progress.attempt, 'done', progress.done, 'total', progress.total, 'at', progress.at)
      from holdfast.job_progress as progress where progress.job_id = wanted),
    'session', facts_session,
    'queue', json_build_object('name', job.queue, 'pausedAt', (select queue.paused_at from holdfast.queue where queue.name = job.queue)),
    'workers', facts_workers,
    'ahead', facts_ahead,
    'barriers', coalesce(facts_barriers, '[]'),
    'itemOf', facts_item,
    'continues', facts_continues,
    'events', coalesce(facts_events, '[]'),
    'groups', coalesce(facts_groups, '[]'),
    'deliveries', facts_deliveries,
    'oldestWriter', facts_writer,
    'leader', (select json_build_object('term', leader.term, 'holder', leader.holder, 'renewedAt', leader.renewed_at, 'leaseUntil', leader.lease_until,
      'sweptAt', leader.swept_at, 'sweepMs', leader.sweep_ms) from holdfast.leader where leader.is_only),
    'refusals', coalesce((
      select json_agg(json_build_object('at', late.at, 'attempt', late.attempt, 'sessionId', late.session_id, 'write', late.write) order by late.id)
      from (select * from holdfast.refusal where refusal.job_id = wanted order by refusal.id desc limit 5) as late
    ), '[]'));
end $$;

-- The same for a settle that keeps it: whatever goes wrong here must not undo the settle.
create function holdfast.snapshot_of(wanted uuid) returns json language plpgsql stable as $$
begin
  return coalesce(holdfast.facts_of(wanted, false), json_build_object('trouble', 'no source knew the job'));
exception when others then
  return json_build_object('trouble', sqlerrm);
end $$;

-- What is known of a job that was never submitted, because its barrier came to such an end; null if there was none.
create function holdfast.facts_of_ended(wanted uuid) returns json language sql stable set timezone = 'UTC' as $$
  select json_build_object('at', now(), 'job', null, 'kind', null, 'outputs', '[]'::json, 'progress', null, 'session', null,
    'queue', json_build_object('name', null, 'pausedAt', null), 'workers', null, 'ahead', null, 'barriers', '[]'::json, 'itemOf', null,
    'continues', json_build_object('id', barrier_id, 'tenant', tenant, 'kind', kind, 'total', total, 'arrived', arrived, 'ledger', arrived,
      'openedAt', opened_at, 'armedAt', armed_at, 'isRearmed', is_rearmed, 'expiresAt', expires_at, 'dueAt', null, 'asks', asks, 'firedAt', null,
      'expiredAt', ended_at, 'owner', owner, 'execution', execution, 'endedBy', word),
    'events', coalesce((
      select json_agg(json_build_object('seq', told.seq, 'at', told.at, 'type', told.type, 'state', told.state, 'attempt', told.attempt,
        'stage', told.stage, 'sessionId', told.session_id, 'data', told.data) order by told.seq)
      from (select * from holdfast.event where event.job_id = wanted order by event.seq desc limit 10) as told
    ), '[]'),
    'groups', '[]'::json, 'deliveries', null, 'oldestWriter', null, 'leader', null, 'refusals', '[]'::json)
  from holdfast.owned_end
  where owned_end.job_id = wanted
$$;

-- How many due jobs of its kind go before a queued one, up to `most`. Jobs of one bulk submit fall due at the same moment, and are claimed in
-- the order in which they were written: an id that is lower goes first.
create function holdfast.ahead_of(wanted uuid, most int) returns int language plpgsql stable
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  walked constant int := 20000;
  job record;
  more_urgent int;
  earlier int;
  tied int;
begin
  select ready.* into job from holdfast.ready where ready.job_id = wanted and ready.run_at <= now();
  if not found then
    return null;
  end if;
  -- each priority by itself: together they would be one range of the index, and all that is scheduled behind this job part of it
  select count(*) into more_urgent from (
    select
    from generate_series(1, job.priority - 1) as rank (priority)
    cross join lateral (
      select from holdfast.ready as other
      where other.queue = job.queue and other.kind = job.kind and other.priority = rank.priority and other.run_at <= now()
      limit most
    ) as before
    limit most
  ) as few;
  select count(*) into earlier from (
    select from holdfast.ready as other
    where other.queue = job.queue and other.kind = job.kind and other.priority = job.priority and other.run_at < job.run_at
    limit most
  ) as few;
  select count(*) filter (where few.job_id < wanted) into tied from (
    select other.job_id from holdfast.ready as other
    where other.queue = job.queue and other.kind = job.kind and other.priority = job.priority and other.run_at = job.run_at
    limit walked
  ) as few;
  return least(most, more_urgent + earlier + tied);
end $$;
