-- Functions and views that follow from code are not here, but in src/schema/definitions.ts: those can change without a migration.

-- The definitions that this database has, and the version of Holdfast that put each there. See docs/decisions/0042.
create table holdfast.definition (
  name text primary key,
  checksum text not null,
  version text not null,
  applied_at timestamptz not null default now()
);

-- Jobs. What a job was submitted with is written once and never changes. Its state is the table that has a narrow row for it:
--   ready    it is queued, for now or for later. A claim deletes the row.
--   lease    a worker holds it. One row per claim, however many jobs it took; one bit per job says which have left the lease.
--   waiting  it has fanned out, and its barrier is open.
--   outcome  it is final.
-- A job is in exactly one of them. See docs/decisions/0040 and src/transitions/leases.sql.ts.

-- Numbers the events: see src/events/horizon.ts.
create sequence holdfast.event_seq;

create table holdfast.job (
  id uuid primary key,
  submitted_at timestamptz not null,
  -- the position of its `submitted` event in the log: this row is that event. See the view holdfast.event
  seq bigint not null default (case when pg_current_xact_id() is not null then nextval('holdfast.event_seq') end),
  -- the barrier that it is an item of, and its position among the items
  barrier_id uuid,
  position int,
  -- the stage that it starts at: that of its parent, for a part of a fan-out
  stage smallint not null default 0,
  crash_budget smallint not null,
  priority smallint not null check (priority between 1 and 4),
  -- it runs the `each` of its parent's stage instead of a kind of its own
  is_part boolean not null default false,
  kind text not null,
  queue text not null,
  tenant text not null,
  item_key text,
  -- what its limit counts by, if its kind declares a key
  limit_key text,
  -- up to 500 bytes; larger inputs are in job_payload
  input json
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

create index job_order on holdfast.job (seq);
create index job_item on holdfast.job (barrier_id, position) where barrier_id is not null;
-- A page of one tenant's jobs costs the same however many jobs others have. Jobs of the default tenant are not indexed, and cost nothing.
create index job_tenant on holdfast.job (tenant, id) where tenant <> 'default';
create index job_tenant_order on holdfast.job (tenant, seq) where tenant <> 'default';

create table holdfast.ready (
  job_id uuid primary key,
  -- a claim returns it as a number, which infinity is not: such a row, written by hand, would make claims fail
  run_at timestamptz not null check (isfinite(run_at)),
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
  tenant text not null,
  -- copied from the row of the job if its input is tiny, so that a claim need not read that row. Both are null otherwise
  submitted_at timestamptz,
  input text,
  -- the gate that it waits at, if a limit or fairness applies to it; null for most. See src/transitions/gates.sql.ts
  gate_key text collate "C"
) with (
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.1
);

-- The claim's path: one range per lane (queue, kind, priority) that ends at now(), so that scheduled rows and rows of other lanes are never
-- visited. Without the id, the entries of one bulk submit are duplicates, which a b-tree stores in few bytes.
create index ready_lane on holdfast.ready (queue, kind, priority, run_at);
-- A suspect runs alone in its process: it has lost two workers, or one more loss exhausts its crash budget. This finds suspects among any number of other jobs.
create index ready_suspect on holdfast.ready (queue, kind, priority, run_at)
  where crashes >= 2 or (crashes = 1 and crash_budget <= 2);
create index ready_item on holdfast.ready (barrier_id) where barrier_id is not null;
-- What waits at a gate. Jobs without a limit are not in it, and cost nothing.
create index ready_gate on holdfast.ready (queue, kind, gate_key, priority, run_at) where gate_key is not null;
create index ready_tenant on holdfast.ready (tenant, job_id) where tenant <> 'default';

-- The leader, which runs the duties. One row; a term is never used twice.
create table holdfast.leader (
  is_only boolean primary key default true check (is_only),
  term bigint not null,
  holder text not null,
  acquired_at timestamptz not null,
  renewed_at timestamptz not null,
  lease_until timestamptz not null,
  swept_at timestamptz,
  sweep_ms double precision,
  -- since when there has been a leader without a gap: before that, sessions could not renew their leases either
  steady_since timestamptz not null default '-infinity',
  -- for how long in total there was no leader, because the database could not be reached or its clock was set forward. How much of that
  -- time has passed for workers, which go by their own clocks, is unknown; so every deadline is extended by it
  vacant_ms double precision not null default 0
) with (fillfactor = 50);

create function holdfast.vacant_ms() returns double precision language plpgsql stable as $$
begin
  return coalesce((select leader.vacant_ms from holdfast.leader), 0);
end $$;

-- What one claim took of one kind, stage and priority. The id is random: after a restore, a sequence would return the same ids again, and a
-- worker from before the restore would write about jobs that it does not hold.
create table holdfast.lease (
  id bigint primary key default floor(random() * 9007199254740991)::bigint,
  session_id bigint not null,
  claimed_at timestamptz not null default now(),
  deadline_at timestamptz not null,
  -- leader.vacant_ms when it was created: the deadline is extended by what has been added since
  vacant_ms double precision not null default holdfast.vacant_ms(),
  -- when the last of its jobs was due: jobs that are released return to that position in their queue
  due_at timestamptz not null,
  -- the range of its ids, so that the lease of a job is found without reading all leases
  low_id uuid not null,
  high_id uuid not null,
  stage smallint not null,
  priority smallint not null,
  kind text not null,
  queue text not null,
  -- null if its jobs belong to several tenants
  tenant text,
  -- the gate that its jobs came through, whose slots they hold; null for jobs without a limit
  gate_key text collate "C",
  -- one bit per job, in the order of job_ids; set once the job has left this lease
  done bit varying not null,
  -- the barriers that its jobs are items of; null if none of them is an item
  barrier_ids uuid[],
  job_ids uuid[] not null,
  -- null if all are first attempts without failures, crashes and failed items, as most are
  attempts int[],
  failures smallint[],
  crashes smallint[],
  flawed boolean[]
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

alter table holdfast.lease alter column job_ids set storage external;
create index lease_session on holdfast.lease (session_id);
-- The lease of a job is searched from the job's id downwards, and is nearly always the first one.
create index lease_low on holdfast.lease (low_id);
-- Count who holds the slots of a limit.
create index lease_gate on holdfast.lease (kind, queue, gate_key) where gate_key is not null;
create index lease_gate_queue on holdfast.lease (queue) where gate_key is not null;

create table holdfast.waiting (
  job_id uuid primary key,
  since timestamptz not null default now(),
  barrier_id uuid,
  attempt int not null,
  stage smallint not null,
  failures smallint not null,
  crashes smallint not null,
  is_flawed boolean not null,
  tenant text not null
);

create index waiting_item on holdfast.waiting (barrier_id) where barrier_id is not null;
create index waiting_tenant on holdfast.waiting (tenant, job_id) where tenant <> 'default';

create table holdfast.outcome (
  job_id uuid primary key,
  finished_at timestamptz not null,
  -- Outcomes are numbered like events, in the order in which jobs end. The outcome of a job that succeeded is its `finished` event; other
  -- endings have events of their own, because a redo removes the outcome and the event remains.
  seq bigint not null default (case when pg_current_xact_id() is not null then nextval('holdfast.event_seq') end),
  session_id bigint,
  barrier_id uuid,
  attempt int not null,
  stage smallint not null,
  failures smallint not null,
  crashes smallint not null,
  is_flawed boolean not null,
  state text not null,
  kind text not null,
  tenant text not null,
  error json
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

-- Jobs that did not succeed are few, and often searched for; the others are found by id.
create index outcome_trouble on holdfast.outcome (state, job_id) where state <> 'succeeded';
create index outcome_order on holdfast.outcome (seq);
create index outcome_tenant_order on holdfast.outcome (tenant, seq) where state = 'succeeded' and tenant <> 'default';
create index outcome_item on holdfast.outcome (barrier_id, state) where barrier_id is not null;

-- Every attempt that a worker holds: one row per job that has not left its lease.
create view holdfast.running as
select lease.id as lease_id, (held.number - 1)::int as slot, length(lease.done) as size, held.job_id, lease.session_id, lease.claimed_at,
  lease.deadline_at + greatest(0, coalesce((select leader.vacant_ms from holdfast.leader), 0) - lease.vacant_ms) * interval '1 ms' as deadline_at,
  lease.due_at, lease.low_id, lease.high_id, lease.kind, lease.queue, lease.stage, lease.barrier_ids, lease.tenant,
  coalesce(held.attempt, 1) as attempt, coalesce(held.failures, 0::smallint) as failures, coalesce(held.crashes, 0::smallint) as crashes,
  coalesce(held.is_flawed, false) as is_flawed
from holdfast.lease
cross join lateral unnest(lease.job_ids, lease.attempts, lease.failures, lease.crashes, lease.flawed)
  with ordinality as held (job_id, attempt, failures, crashes, is_flawed, number)
where get_bit(lease.done, held.number::int - 1) = 0;

-- Larger inputs, and what else a job was submitted with.
create table holdfast.job_payload (
  job_id uuid primary key,
  input json,
  -- stored, because a claim adds up sizes, and reading a large value to measure it costs more than anything else that a claim does
  bytes int generated always as (octet_length(input::text)) stored,
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
  bytes int generated always as (octet_length(output::text)) stored,
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
  -- set when its job is removed: when and how the job ended. The key outlives the job for a while, so that a repeated submit runs nothing
  ended_at timestamptz,
  state text,
  primary key (tenant, key)
);

create index job_key_job on holdfast.job_key (job_id);
create index job_key_ended on holdfast.job_key (ended_at) where ended_at is not null;

create table holdfast.kind (
  -- a kind that a worker registers with a tenant's key applies to the jobs of that tenant only. The empty name stands for all tenants; no
  -- tenant can have it, and it sorts first, as the rule that takes precedence
  tenant text not null default '',
  name text not null,
  queue text not null,
  priority smallint not null,
  crash_budget smallint not null,
  stages json not null,
  -- how many milliseconds its jobs are kept after they end, by state; for states that are not listed, the settings apply
  keep json,
  seen_at timestamptz not null default now(),
  primary key (tenant, name)
);

create index kind_keep on holdfast.kind (tenant, name) where keep is not null;

-- Finds kinds that no worker has handled for a long time.
create index kind_seen_at on holdfast.kind (seen_at);

-- A queue has a row only once it has been paused.
create table holdfast.queue (
  name text primary key,
  paused_at timestamptz,
  paused_by text,
  pause_reason text
);

-- One worker process. Its lease covers all its attempts.
create table holdfast.session (
  id bigint generated always as identity primary key,
  started_at timestamptz not null default now(),
  heartbeat_at timestamptz not null default now(),
  lease_until timestamptz not null,
  lost_after interval not null,
  ended_at timestamptz,
  -- when the server that holds the session's advisory lock was started; null while the session holds no lock.
  -- A server that was started later can't know of the lock, so the lock's absence there proves nothing.
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
  -- the signal or exit code of its process, if a supervisor saw it
  exit text,
  -- when its worker was heard from after the session had been ended, and when the crashes counted against its jobs were undone
  came_back_at timestamptz,
  cleared_at timestamptz,
  -- what it reports with each heartbeat, because a process that sends heartbeats may still do nothing.
  -- Whether it claims jobs; false while it drains
  is_claiming boolean not null default true,
  -- how many handlers it runs, including those of jobs that it no longer holds
  busy int not null default 0,
  -- for how long its event loop has been blocked
  blocked_ms int not null default 0,
  -- handlers that ignored their abort signal: how many, and the first of them
  unresponsive int not null default 0,
  unresponsive_handlers json,
  -- for a remote worker, what a server needs to answer its next request: the kinds that it handles, with their rules;
  -- null for a worker that is connected to the database itself
  remote json,
  -- the key that opened it; it is invisible to all others
  owner text,
  -- the only tenant whose jobs it may claim; null for all
  tenant text
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

create index session_living on holdfast.session (id) where ended_at is null;
-- Counts the live sessions of a tenant, and finds those of a key.
create index session_living_tenant on holdfast.session (tenant) where ended_at is null and tenant is not null;
create index session_living_owner on holdfast.session (owner) where ended_at is null and owner is not null;
create index session_came_back on holdfast.session (id) where came_back_at is not null and cleared_at is null;

-- Writes that were refused because their lease was lost. Kept for diagnosis.
create table holdfast.refusal (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  job_id uuid not null,
  attempt int not null,
  session_id bigint not null,
  write text not null
);

create index refusal_job on holdfast.refusal (job_id);

-- A worker that claims nothing until it is empty, so that a suspect of the kind can run. One per kind.
create table holdfast.drain (
  queue text not null,
  kind text not null,
  session_id bigint not null,
  -- a worker that stops renewing loses its turn
  renewed_at timestamptz not null default now(),
  primary key (queue, kind)
) with (fillfactor = 50);

-- Outcomes that the database refused in every form. They are kept with the reason and tried again, while their jobs are not run.
-- See docs/decisions/0023.
create table holdfast.parked_outcome (
  job_id uuid primary key,
  attempt integer not null,
  session_id bigint not null,
  -- as JSON text: it may be the JSON itself that is refused
  outcome text not null,
  reason text not null,
  tries integer not null default 0,
  parked_at timestamptz not null default now(),
  next_at timestamptz not null default now()
);

create index parked_outcome_due on holdfast.parked_outcome (next_at);

-- What joins a fan-out. The items are the ledger; the counters are a cache of it, updated with each item's settle. See src/transitions/items.sql.ts.
create table holdfast.barrier (
  id uuid primary key,
  job_id uuid not null,
  stage smallint not null,
  tenant text not null,
  opened_at timestamptz not null default now(),
  -- all items exist, so the total is known
  sealed_at timestamptz,
  -- its job is waiting for it; nothing fires before it is armed
  armed_at timestamptz,
  -- its continuation was fired; a redo clears this, and it can fire again
  joined_at timestamptz,
  -- too many items failed, so the rest are cancelled
  stopped_at timestamptz,
  expires_at timestamptz,
  -- how often the expiry was postponed because workers of its items had died
  extended smallint not null default 0,
  moved_at timestamptz not null default now(),
  total int,
  succeeded int not null default 0,
  failed int not null default 0,
  cancelled int not null default 0,
  -- how many failed items are tolerated, as a count and as a share of the total; null for none
  tolerate_count int,
  tolerate_share double precision,
  -- why its producer gave up, if it had added items before: there may be fewer items than intended
  short json,
  unique (job_id, stage)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The reaper's path: barriers that have not joined.
create index barrier_open on holdfast.barrier (id) where joined_at is null;

-- A bit string of that size, with the bits of these slots set.
create function holdfast.bits_of(size int, slots int[]) returns bit varying language sql immutable as $$
  select string_agg(case when taken.slot is null then '0' else '1' end, '' order by every.slot)::bit varying
  from generate_series(0, size - 1) as every (slot)
  left join (select distinct slot from unnest(slots) as one (slot)) as taken on taken.slot = every.slot
$$;

-- Barriers for executions that another system owns. The parts are the ledger; the count is a cache of it, updated with each arrival.

-- A number that is never used twice, not even if a barrier is removed and another one is opened under the same id.
create sequence holdfast.owned_arming;

create table holdfast.owned_barrier (
  id text primary key check (length(id) between 1 and 300),
  -- the tenant that it belongs to; its owner is asked about executions of that tenant only
  tenant text,
  arming bigint not null,
  opened_arming bigint not null,
  opened_at timestamptz not null default now(),
  armed_at timestamptz not null default now(),
  moved_at timestamptz not null default now(),
  -- when its count was last compared with the ledger
  checked_at timestamptz not null default now(),
  expires_at timestamptz,
  -- when its expiry is handled next: at first the expiry itself, then later and later while its owner does not answer
  due_at timestamptz,
  asks smallint not null default 0,
  -- the continuation was fired
  fired_at timestamptz,
  -- it expired with parts missing, and has no owner to notify
  expired_at timestamptz,
  total int not null constraint owned_barrier_total check (total >= 0),
  arrived int not null default 0,
  -- a hash of its parts: tells whether it is opened again with the same ones
  parts_hash text not null,
  owner text,
  execution text,
  -- the continuation: the job to submit, under an id that is derived from the barrier and its arming
  job_id uuid not null,
  kind text not null,
  queue text not null,
  priority smallint not null check (priority between 1 and 4),
  crash_budget smallint not null,
  delay_ms double precision not null default 0,
  run_at timestamptz,
  limit_key text,
  input json,
  meta json,
  constraint owned_barrier_owner check ((owner is null) = (execution is null)),
  constraint owned_barrier_end check (fired_at is null or expired_at is null)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The reaper's path. The count is in no index, so that an arrival is a HOT update of the row that all arrivals share.
create index owned_barrier_open on holdfast.owned_barrier (due_at) where fired_at is null and expired_at is null;

create table holdfast.owned_part (
  barrier_id text not null references holdfast.owned_barrier on delete cascade,
  name text not null check (length(name) between 1 and 300),
  arrived_at timestamptz,
  primary key (barrier_id, name)
) with (fillfactor = 70);

-- How many parts have arrived, by the ledger. Volatile, so that it has its own snapshot: otherwise, a statement that waited for the
-- barrier's row would count what it saw before the wait, and neither of two last arrivals would find itself the last.
create function holdfast.owned_arrived(barrier text) returns int language plpgsql volatile as $$
begin
  return (select count(*) from holdfast.owned_part where barrier_id = barrier and arrived_at is not null);
end $$;

-- The database itself refuses to reopen a fired barrier, to decrease an arming, and to undo an arrival.
create function holdfast.refuse_owned() returns trigger language plpgsql as $$
begin
  raise exception 'holdfast: a fired barrier cannot be reopened, an arming cannot decrease, and an arrival cannot be undone'
    using errcode = 'check_violation';
end $$;

create trigger owned_fence before update on holdfast.owned_barrier for each row
when (new.id <> old.id or new.arming < old.arming or (old.fired_at is not null and new.fired_at is distinct from old.fired_at))
execute function holdfast.refuse_owned();

create trigger owned_arrival before update on holdfast.owned_part for each row
when (old.arrived_at is not null and new.arrived_at is distinct from old.arrived_at)
execute function holdfast.refuse_owned();

-- Finds the barrier whose continuation a job is. An arrival does not change this column, so it stays a HOT update.
create index owned_barrier_job on holdfast.owned_barrier (job_id);

-- Barriers that expired with parts missing and were removed: their owner marked the execution failed, or reported that it had
-- ended or was gone. A barrier that is opened again under the same id is unrelated.
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

-- The event log, partitioned by time so that old events are dropped with their partition, and its groups of readers. Events are written in the
-- transaction of the change, and never updated.
-- txid comes before seq, because defaults are computed from left to right: a transaction gets its id before it draws a number. Readers rely on
-- that: see src/events/horizon.ts. An event that is not about a job has neither job_id nor kind.
create table holdfast.event_log (
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

create index event_job on holdfast.event_log (job_id, seq);
create index event_order on holdfast.event_log (seq);
-- Finds recent recoveries, and what a session lost, however many other events there are. Few events are in these indexes.
create index event_recovery on holdfast.event_log (seq) where type in ('job.revived', 'job.quarantined');
create index event_lost on holdfast.event_log (session_id) where type = 'job.revived';
-- A tenant's reads cost as much as the tenant has events. As with jobs, the default tenant is not indexed.
create index event_tenant on holdfast.event_log (tenant, seq) where tenant <> 'default';

-- Present and dropped partitions. What was dropped tells an audit from when on it can expect events.
create table holdfast.event_partition (
  name text primary key,
  from_at timestamptz not null,
  to_at timestamptz not null,
  dropped_at timestamptz
);

-- Catches events that no partition exists for, so that a settle does not fail if there was no leader for a long time.
create table holdfast.event_rest partition of holdfast.event_log default;

-- Creates partitions up to that far ahead, and moves what the default partition has caught for them. Runs with the privileges of its owner, so
-- that a process needs none to change the schema. It does not wait long for a table in use, or writers would queue up behind it.
create function holdfast.add_event_partitions(span interval, ahead interval) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$
declare
  begins timestamptz;
  ends timestamptz;
  part text;
begin
  -- one at a time. Not an advisory lock, whose number an application may use as well
  lock table holdfast.event_partition in share update exclusive mode;
  loop
    select max(to_at) into begins from holdfast.event_partition;
    begins := coalesce(begins, date_trunc('hour', now()));
    exit when begins >= now() + ahead;
    ends := greatest(begins, date_trunc('hour', now())) + span;
    part := 'event_' || to_char(begins at time zone 'utc', 'YYYYMMDD"t"HH24MISSUS');
    execute format('create table holdfast.%I (like holdfast.event_log including defaults) with (autovacuum_vacuum_insert_scale_factor = 0.1)', part);
    lock table holdfast.event_rest in access exclusive mode;
    execute format('with moved as (delete from holdfast.event_rest where at >= %L and at < %L returning *)
      insert into holdfast.%I select * from moved', begins, ends, part);
    execute format('alter table holdfast.event_log attach partition holdfast.%I for values from (%L) to (%L)', part, begins, ends);
    insert into holdfast.event_partition (name, from_at, to_at) values (part, begins, ends)
      on conflict (name) do update set from_at = excluded.from_at, to_at = excluded.to_at, dropped_at = null;
    return next part;
  end loop;
end $$;

create table holdfast.event_group (
  name text primary key,
  -- null: all types
  types text[],
  -- whether it also reads events of fan-out items, of which there may be millions
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

-- How far a group has read in one partition of the jobs: everything up to seq is done. The term is the fence of its reader.
create table holdfast.event_cursor (
  group_name text not null references holdfast.event_group on delete cascade,
  partition smallint not null,
  seq bigint not null,
  term bigint not null default 0,
  reader_id uuid,
  -- how many readers died here; from the second on, events are read one by one up to careful_until, to find the one that kills them
  crashes smallint not null default 0,
  careful_until bigint not null default 0,
  wants_wake boolean not null default false,
  moved_at timestamptz not null default now(),
  -- the event that currently fails
  failing_seq bigint,
  failures smallint not null default 0,
  error text,
  primary key (group_name, partition)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- Events that a group could not handle, with their content, so that they outlive the log.
create table holdfast.parked_event (
  group_name text not null references holdfast.event_group on delete cascade,
  seq bigint not null,
  partition smallint not null,
  event json not null,
  error text not null,
  failures smallint not null,
  parked_at timestamptz not null default now(),
  -- set to have it handled again
  replay_at timestamptz,
  primary key (group_name, seq)
);

create index parked_event_replay on holdfast.parked_event (group_name, partition, seq) where replay_at is not null;

-- Drops partitions that are past the retention and that every group has read, or that are older than the cap. The cursor of a group that had
-- not read a dropped partition moves to the next event that is left: numbers and times are not in the same order, so later partitions may have
-- numbers below the highest dropped one. Partitions that a group still needs are reported and kept.
create function holdfast.drop_event_partitions(retention interval, cap interval)
returns table (name text, is_dropped boolean, unread_by text[])
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '200ms' as $$
declare
  part record;
  top bigint;
begin
  lock table holdfast.event_partition in share update exclusive mode;
  for part in
    select p.name, p.to_at from holdfast.event_partition as p
    where p.dropped_at is null and p.to_at < now() - least(retention, cap) order by p.to_at
  loop
    -- if it was dropped by hand, an error here would keep all later ones from being dropped
    if to_regclass(format('holdfast.%I', part.name)) is null then
      update holdfast.event_partition as p set dropped_at = now() where p.name = part.name;
      continue;
    end if;
    -- waits for transactions that still write into it, or their events could be dropped unread
    execute format('lock table holdfast.%I in share mode', part.name);
    execute format('select max(seq) from holdfast.%I', part.name) into top;
    select array_agg(distinct c.group_name) into unread_by from holdfast.event_cursor as c where c.seq < top;
    name := part.name;
    is_dropped := unread_by is null or part.to_at < now() - cap;
    if is_dropped then
      execute format('drop table holdfast.%I', part.name);
      update holdfast.event_cursor as c
      set seq = (select least(top, min(e.seq) - 1) from holdfast.events_after(c.seq, 9223372036854775807, 1) as e), term = c.term + 1
      where c.seq < top;
      update holdfast.event_partition as p set dropped_at = now() where p.name = part.name;
    end if;
    return next;
  end loop;
  delete from holdfast.event_rest where at < now() - cap;
end $$;

-- How far the log goes: the last number drawn; then, unless that is known already, a transaction id; then the oldest running one. The
-- order is the argument: see src/events/horizon.ts. The next transaction id to be assigned would do as well as our own, but a snapshot does not
-- show it: its xmax is one past the last that has *ended*. If a reader might have to wait for a transaction, `running` lists those of
-- this database, which are the only ones that write events here; it is null if sessions of other users are hidden from us. `log_id` differs
-- after the database was restored from a backup, by whichever method.
create function holdfast.event_mark(known bigint, out top bigint, out mark_txid xid8, out oldest_txid xid8, out running bigint[], out log_id text)
language plpgsql as $$
begin
  log_id := concat_ws(' ', (select oid from pg_database where datname = current_database()), 'holdfast.event_seq'::regclass::oid,
    extract(epoch from pg_postmaster_start_time()));
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

-- Wakes readers, but only if one asked for it: every NOTIFY takes a lock that all commits share. Wakes none once the notification queue is half
-- full: when it is full, every commit that notifies fails. Readers poll anyway.
create function holdfast.wake_readers() returns trigger language plpgsql as $$
begin
  if exists (select from holdfast.event_cursor where wants_wake) and pg_notification_queue_usage() < 0.5 then
    perform pg_notify('holdfast_event', '');
  end if;
  return null;
end $$;

create trigger event_wakes after insert on holdfast.event_log for each statement execute function holdfast.wake_readers();
create trigger job_wakes after insert on holdfast.job for each statement execute function holdfast.wake_readers();
create trigger outcome_wakes after insert on holdfast.outcome for each statement execute function holdfast.wake_readers();

select holdfast.add_event_partitions(interval '3 days', interval '3 days');

-- Webhooks: where they go, and every send as a row.

-- The end of the log, read after the transaction has its id. So once all transactions up to that id have ended, whatever is not visible
-- yet comes after this position. See src/webhooks/planner.ts.
create function holdfast.end_of_log() returns bigint language plpgsql as $$
begin
  perform pg_current_xact_id();
  return (select case when is_called then last_value else 0 end from holdfast.event_seq);
end $$;

-- A UUID of version 7, so that ids sort by time.
create function holdfast.fresh_id() returns uuid language sql volatile as $$
  select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
    || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$;

create table holdfast.endpoint (
  id uuid primary key,
  tenant text not null,
  url text not null,
  types text[] not null,
  -- whether it also wants events of fan-out items
  items boolean not null,
  headers json not null,
  -- encrypted; the old one stays valid until old_secret_until
  secret text not null,
  old_secret text,
  old_secret_until timestamptz,
  created_at timestamptz not null default now(),
  -- it gets only events after this position in the log. A time would not do: that of an event is when its transaction began
  since_seq bigint not null default holdfast.end_of_log(),
  -- the position from which on it wants these types
  types_seq bigint not null default holdfast.end_of_log(),
  disabled_at timestamptz,
  disabled_why text,
  -- since when every send has failed
  failing_since timestamptz,
  note text
);

create index endpoint_tenant on holdfast.endpoint (tenant, id);

-- The webhook of a single job, passed with its submit.
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
  -- deliveries to one receiver share a lane: the id of the endpoint, or the origin of the job's URL
  lane text not null,
  state text not null,
  created_at timestamptz not null default now(),
  -- when it is due; while a sender holds it, when the sender's claim runs out
  next_at timestamptz not null default now(),
  claimed_at timestamptz,
  -- how often it was claimed: the fence of a sender
  tries int not null default 0,
  -- since it was created or last replayed: how often it failed, and when first. It is given up some time after that
  failures smallint not null default 0,
  failed_at timestamptz,
  -- the exact body of every send
  body text not null,
  status smallint,
  error text,
  excerpt text,
  ms int,
  ended_at timestamptz
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

-- Planned exactly once, however often the log is read.
create unique index delivery_event on holdfast.delivery (event_seq, coalesce(endpoint_id, '00000000-0000-0000-0000-000000000000'));
-- The sender's path: from tenant to tenant, from lane to lane of each, and what is due in each lane.
create index delivery_due_by_tenant on holdfast.delivery (tenant, lane, next_at) where state = 'pending';
create index delivery_dead on holdfast.delivery (id) where state = 'dead';
create index delivery_ended on holdfast.delivery (ended_at) where ended_at is not null;
create index delivery_endpoint on holdfast.delivery (endpoint_id, id) where endpoint_id is not null;
create index delivery_job on holdfast.delivery (job_id, id) where job_id is not null;
create index delivery_tenant on holdfast.delivery (tenant, id) where tenant <> 'default';

-- API keys. Only a hash of each key is stored, so what this table holds can't be used to authenticate.
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
  -- approximate: written at most once a minute
  used_at timestamptz,
  -- a key as `key <id>`, a person as their account and machine; null if unknown
  created_by text,
  revoked_by text
);

create index api_key_tenant on holdfast.api_key (tenant, id);

-- A secret of this database that all servers share. They encrypt positions in lists and in the log with it, so that clients can't count or
-- guess from them what others do.
create table holdfast.server_secret (
  is_only boolean primary key default true check (is_only),
  secret bytea not null
);

insert into holdfast.server_secret (secret)
values (decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));

-- What every source said about an attempt right before it failed or lost its worker. See docs/decisions/0017.
create table holdfast.snapshot (
  job_id uuid not null,
  attempt int not null,
  at timestamptz not null default now(),
  -- the event that announced the end of the attempt
  event text not null,
  facts json not null,
  -- an attempt ends once
  primary key (job_id, attempt)
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

create index snapshot_at on holdfast.snapshot (at);

-- Retention: finished jobs are removed after a while. Outcomes are scanned in their order, once per distinct retention period, so that
-- jobs that are kept longer are not visited again and again. See docs/decisions/0041.

create table holdfast.prune_cursor (
  keep_ms bigint primary key,
  -- every outcome up to here has been scanned
  seq bigint not null
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- The last known number up to which every outcome is visible or never will be. So a transaction that stays open does not prevent
-- the removal of jobs that ended long before it began.
create table holdfast.prune_mark (
  is_only boolean primary key default true check (is_only),
  seq bigint not null
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

insert into holdfast.prune_mark (seq) values (0);

-- Jobs that are due but could not be removed: a delivery is pending, an item is live, or a row is locked.
create table holdfast.prune_later (
  job_id uuid primary key,
  next_at timestamptz not null
);

create index prune_later_due on holdfast.prune_later (next_at);

-- Fan-outs whose job is removed and whose items are still to be removed: there may be millions of them.
create table holdfast.prune_items (
  barrier_id uuid primary key,
  -- items up to here have been visited
  position int not null default -1,
  next_at timestamptz not null default now()
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

create index prune_items_due on holdfast.prune_items (next_at);

-- How long a job with that ending is kept: as its kind specifies, or else as the settings do.
create function holdfast.kept_ms(of_kind text, of_tenant text, ended_as text, succeeded_ms bigint, others_ms bigint) returns bigint language sql stable as $$
  select coalesce(
    (
      select (kind.keep ->> ended_as)::bigint
      from holdfast.kind
      where kind.tenant in ('', of_tenant) and kind.name = of_kind
      order by kind.tenant
      limit 1
    ),
    case when ended_as = 'succeeded' then succeeded_ms else others_ms end)
$$;

-- The retention periods to scan for. Each costs a scan, so those of tenants are rounded up, by an eighth at most: then there are few of
-- them, however many tenants there are.
create function holdfast.retention_periods(succeeded_ms bigint, others_ms bigint) returns setof bigint language sql stable as $$
  select succeeded_ms
  union
  select others_ms
  union
  select case when kind.tenant = '' then rule.value::bigint else (ceil(span.hours / step.hours) * step.hours * 3600000)::bigint end
  from holdfast.kind
  cross join lateral json_each_text(kind.keep) as rule
  cross join lateral (select greatest(1, ceil(rule.value::float8 / 3600000)) as hours) as span
  cross join lateral (select greatest(1, power(2, floor(log(2, span.hours::numeric)) - 3))::float8 as hours) as step
  where kind.keep is not null
$$;

-- Removes those of these jobs that may be removed, with everything that belongs to them, and returns their ids. Locked rows are skipped, not
-- waited for. Items of a fan-out follow later, since there may be millions; src/transitions/leases.sql.ts says why they can't be redone meanwhile.
create function holdfast.remove_jobs(ids uuid[], read_up_to bigint, cap_at timestamptz, keys_ms bigint, out gone uuid[], out forced int)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
set jit = off set lock_timeout = '100ms' as $$
declare
  barriers uuid[];
  stay uuid[];
  unread uuid[];
begin
  select coalesce(array_agg(own.job_id), '{}'), coalesce(array_agg(own.job_id) filter (where own.is_unread), '{}') into gone, unread
  from (
    select locked.job_id, locked.is_unread
    from (
      select ended.job_id, ended.finished_at < cap_at as is_capped,
        ended.seq > read_up_to
          or exists (select from holdfast.delivery where delivery.job_id = ended.job_id and delivery.state = 'pending')
          -- the event of a job that succeeded is its outcome; other endings have an event of their own, which may have a higher number
          or (ended.state <> 'succeeded' and exists (
            select from holdfast.event_log as told where told.job_id = ended.job_id and told.seq > read_up_to
          )) as is_unread
      from holdfast.outcome as ended
      join holdfast.job on job.id = ended.job_id
      where ended.job_id = any(ids)
      for update of ended, job skip locked
    ) as locked
    where locked.is_capped or not locked.is_unread
  ) as own;
  if exists (select from holdfast.barrier where barrier.job_id = any(gone)) then
    -- a redo of an item locks its barrier; so once all barriers are locked here, every live item is visible
    barriers := array(select barrier.id from holdfast.barrier where barrier.job_id = any(gone) for update skip locked);
    stay := array(
      select distinct barrier.job_id
      from holdfast.barrier
      where barrier.job_id = any(gone) and (barrier.id <> all(barriers) or exists (select from holdfast.live_items(barrier.id)))
    );
    gone := array(select id from unnest(gone) as one (id) where id <> all(stay));
    insert into holdfast.prune_items (barrier_id) select barrier.id from holdfast.barrier where barrier.job_id = any(gone) on conflict do nothing;
    delete from holdfast.barrier where barrier.job_id = any(gone);
  end if;
  forced := (select count(*) from unnest(unread) as one (id) where id = any(gone));
  update holdfast.job_key
  set ended_at = ended.finished_at, state = ended.state
  from holdfast.outcome as ended
  where job_key.job_id = any(gone) and ended.job_id = job_key.job_id;
  delete from holdfast.job_key where job_key.job_id = any(gone) and job_key.ended_at <= now() - keys_ms * interval '1 ms';
  delete from holdfast.job_payload where job_payload.job_id = any(gone);
  delete from holdfast.stage_output where stage_output.job_id = any(gone);
  delete from holdfast.job_progress where job_progress.job_id = any(gone);
  delete from holdfast.job_webhook where job_webhook.job_id = any(gone);
  delete from holdfast.signal where signal.job_id = any(gone);
  delete from holdfast.signal_wait where signal_wait.job_id = any(gone);
  delete from holdfast.unique_job where unique_job.job_id = any(gone) and coalesce(unique_job.until, now()) <= now();
  delete from holdfast.snapshot where snapshot.job_id = any(gone);
  delete from holdfast.refusal where refusal.job_id = any(gone);
  delete from holdfast.delivery where delivery.job_id = any(gone);
  delete from holdfast.event_log where event_log.job_id = any(gone);
  delete from holdfast.outcome where outcome.job_id = any(gone);
  delete from holdfast.job where job.id = any(gone);
end $$;

-- The same if one of the rows is locked: then the jobs are removed one by one, except those that are locked.
create function holdfast.remove_free_jobs(ids uuid[], read_up_to bigint, cap_at timestamptz, keys_ms bigint, out gone uuid[], out forced int)
language plpgsql as $$
declare
  one uuid;
  removed record;
  held int := 0;
begin
  gone := '{}';
  forced := 0;
  if cardinality(ids) = 0 then
    return;
  end if;
  begin
    select * into removed from holdfast.remove_jobs(ids, read_up_to, cap_at, keys_ms);
    gone := removed.gone;
    forced := removed.forced;
    return;
  exception when lock_not_available or deadlock_detected then
    null;
  end;
  foreach one in array ids loop
    -- each locked row costs a lock timeout; the rest are removed when these are tried again
    exit when held >= 3;
    begin
      select * into removed from holdfast.remove_jobs(array[one], read_up_to, cap_at, keys_ms);
      gone := gone || removed.gone;
      forced := forced + removed.forced;
    exception when lock_not_available or deadlock_detected then
      held := held + 1;
    end;
  end loop;
end $$;

-- Removes expired keys of removed jobs, and says whether there may be more.
create function holdfast.prune_keys(keys_ms bigint, most int) returns boolean language plpgsql as $$
declare
  removed int;
begin
  delete from holdfast.job_key
  where ctid = any(array(
    select job_key.ctid from holdfast.job_key where job_key.ended_at <= now() - keys_ms * interval '1 ms' limit most for update skip locked
  ));
  get diagnostics removed = row_count;
  return removed >= most;
end $$;

-- Removes items whose parent is removed.
create function holdfast.prune_fan_outs(read_up_to bigint, cap_at timestamptz, keys_ms bigint, most int,
  out removed int, out forced int, out is_full boolean)
language plpgsql as $$
declare
  rest record;
  done record;
  due uuid[];
  last_position int;
begin
  removed := 0;
  forced := 0;
  is_full := false;
  for rest in
    select * from holdfast.prune_items where prune_items.next_at <= now() order by prune_items.next_at limit 100 for update skip locked
  loop
    exit when removed >= most;
    select coalesce(array_agg(item.id), '{}'), max(item.position) into due, last_position
    from (
      select job.id, job.position from holdfast.job
      where job.barrier_id = rest.barrier_id and job.position > rest.position
      order by job.barrier_id, job.position
      limit most - removed
    ) as item;
    select * into done from holdfast.remove_free_jobs(due, read_up_to, cap_at, keys_ms);
    removed := removed + cardinality(done.gone);
    forced := forced + done.forced;
    if cardinality(due) > 0 then
      is_full := true;
      update holdfast.prune_items set position = last_position where prune_items.barrier_id = rest.barrier_id;
    elsif exists (select from holdfast.job where job.barrier_id = rest.barrier_id) then
      update holdfast.prune_items set position = -1, next_at = now() + interval '1 minute' where prune_items.barrier_id = rest.barrier_id;
    else
      delete from holdfast.prune_items where prune_items.barrier_id = rest.barrier_id;
    end if;
  end loop;
end $$;

-- Removes jobs that could not be removed before. What was redone since is found by the scan once it has ended again.
create function holdfast.prune_held_back(succeeded_ms bigint, others_ms bigint, read_up_to bigint, cap_at timestamptz, keys_ms bigint, most int,
  out removed int, out forced int, out is_full boolean)
language plpgsql as $$
declare
  done record;
  due uuid[];
begin
  removed := 0;
  forced := 0;
  due := array(
    select prune_later.job_id from holdfast.prune_later
    where prune_later.next_at <= now() order by prune_later.next_at limit greatest(0, most) for update skip locked
  );
  is_full := cardinality(due) > 0 and cardinality(due) >= most;
  if cardinality(due) = 0 then
    return;
  end if;
  delete from holdfast.prune_later
  where prune_later.job_id = any(due) and not exists (
    select from holdfast.outcome as own
    where own.job_id = prune_later.job_id and (own.finished_at > now()
      or own.finished_at <= now() - holdfast.kept_ms(own.kind, own.tenant, own.state, succeeded_ms, others_ms) * interval '1 ms')
  );
  due := array(select prune_later.job_id from holdfast.prune_later where prune_later.job_id = any(due));
  select * into done from holdfast.remove_free_jobs(due, read_up_to, cap_at, keys_ms);
  removed := cardinality(done.gone);
  forced := done.forced;
  delete from holdfast.prune_later where prune_later.job_id = any(done.gone);
  update holdfast.prune_later set next_at = now() + interval '1 minute' where prune_later.job_id = any(due);
end $$;

-- Keeps one cursor per retention period. When a period is no longer in use, what waited for it may be due by a shorter one, whose cursor is past it.
create function holdfast.prune_periods(periods bigint[]) returns void language plpgsql as $$
declare
  lost bigint;
begin
  select min(cursor.seq) into lost from holdfast.prune_cursor as cursor where cursor.keep_ms <> all(periods);
  if lost is not null then
    delete from holdfast.prune_cursor as cursor where cursor.keep_ms <> all(periods);
    update holdfast.prune_cursor set seq = lost where prune_cursor.seq > lost;
  end if;
  insert into holdfast.prune_cursor (keep_ms, seq)
  select wanted.keep_ms, 0 from unnest(periods) as wanted (keep_ms)
  where not exists (select from holdfast.prune_cursor as cursor where cursor.keep_ms = wanted.keep_ms);
end $$;

-- Scans outcomes from the cursor of a period up to `up_to`, `most` at a time, and removes up to `room` jobs that are due.
create function holdfast.prune_period(period_ms bigint, behind bigint, up_to bigint, succeeded_ms bigint, others_ms bigint, read_up_to bigint,
  cap_at timestamptz, keys_ms bigint, most int, room int, out removed int, out forced int, out is_full boolean, out unread_by text[])
language plpgsql as $$
declare
  has_rules constant boolean := exists (select from holdfast.kind where kind.keep is not null);
  ended record;
  done record;
  due uuid[] := '{}';
  scanned int := 0;
  last_seq bigint := behind;
  own_ms bigint;
begin
  for ended in
    select own.seq, own.job_id, own.finished_at, own.barrier_id, own.state, own.kind, own.tenant
    from holdfast.outcome as own
    where own.seq > behind and own.seq <= up_to
    order by own.seq
    limit most
  loop
    last_seq := greatest(last_seq, ended.seq - 1);
    exit when ended.finished_at > now() - period_ms * interval '1 ms' and ended.finished_at <= now() + interval '1 hour';
    if ended.seq > read_up_to and ended.finished_at >= cap_at then
      unread_by := array(select distinct cursor.group_name from holdfast.event_cursor as cursor where cursor.seq < ended.seq);
      exit;
    end if;
    last_seq := ended.seq;
    scanned := scanned + 1;
    -- items are removed with their parent
    continue when ended.barrier_id is not null;
    if has_rules then
      own_ms := holdfast.kept_ms(ended.kind, ended.tenant, ended.state, succeeded_ms, others_ms);
    else
      own_ms := case when ended.state = 'succeeded' then succeeded_ms else others_ms end;
    end if;
    if ended.finished_at > now() + interval '1 hour' then
      -- the clock was ahead when it ended, and must not hold up everything that ended after it
      if own_ms <= period_ms then
        insert into holdfast.prune_later (job_id, next_at) values (ended.job_id, now() + own_ms * interval '1 ms') on conflict do nothing;
      end if;
    elsif ended.finished_at <= now() - own_ms * interval '1 ms' then
      due := array_append(due, ended.job_id);
      exit when cardinality(due) >= room;
    end if;
  end loop;
  is_full := scanned >= most or cardinality(due) >= room;
  select * into done from holdfast.remove_free_jobs(due, read_up_to, cap_at, keys_ms);
  removed := cardinality(done.gone);
  forced := done.forced;
  if forced > 0 then
    unread_by := array(select distinct cursor.group_name from holdfast.event_cursor as cursor where cursor.seq < last_seq);
  end if;
  if cardinality(done.gone) < cardinality(due) then
    insert into holdfast.prune_later (job_id, next_at)
    select id, now() + interval '1 minute' from unnest(due) as one (id) where id <> all(done.gone)
    on conflict (job_id) do update set next_at = excluded.next_at;
  end if;
  update holdfast.prune_cursor set seq = last_seq where prune_cursor.keep_ms = period_ms and prune_cursor.seq <> last_seq;
end $$;

-- Removes a batch of what is due, at most so many jobs. Up to `safe`, every outcome is visible or never will be (src/events/horizon.ts). Jobs with
-- events that some group has not read stay, unless they are older than the cap: `forced` counts those that were removed all the same, and
-- `unread_by` names the groups that the scan stopped for or that lost events. `is_full` is null if another process is removing jobs.
create function holdfast.prune(succeeded_ms bigint, others_ms bigint, keys_ms bigint, cap_ms bigint, safe bigint, most int,
  out removed int, out forced int, out is_full boolean, out unread_by text[])
language plpgsql set enable_seqscan = off set enable_sort = off set plan_cache_mode = force_generic_plan set jit = off set lock_timeout = '1s' as $$
declare
  cap_at constant timestamptz := now() - cap_ms * interval '1 ms';
  up_to bigint;
  read_up_to bigint;
  scan record;
  done record;
begin
  removed := 0;
  forced := 0;
  if not exists (select from holdfast.prune_mark) then
    insert into holdfast.prune_mark (seq) values (0) on conflict do nothing;
  end if;
  -- one at a time. A row and not an advisory lock, whose number an application may use as well
  perform from holdfast.prune_mark for update skip locked;
  if not found then
    return;
  end if;
  -- a number beyond the end of the log is from before a restore
  update holdfast.prune_mark set seq = safe
  where prune_mark.seq < safe or prune_mark.seq > (select last_value from holdfast.event_seq);
  up_to := coalesce((select greatest(safe, prune_mark.seq) from holdfast.prune_mark), safe);
  select coalesce(min(cursor.seq), 9223372036854775807) into read_up_to from holdfast.event_cursor as cursor;

  is_full := holdfast.prune_keys(keys_ms, most);
  select * into done from holdfast.prune_fan_outs(read_up_to, cap_at, keys_ms, most);
  removed := removed + done.removed;
  forced := forced + done.forced;
  is_full := is_full or done.is_full;
  select * into done from holdfast.prune_held_back(succeeded_ms, others_ms, read_up_to, cap_at, keys_ms, most - removed);
  removed := removed + done.removed;
  forced := forced + done.forced;
  is_full := is_full or done.is_full;

  perform holdfast.prune_periods(array(select holdfast.retention_periods(succeeded_ms, others_ms)));
  for scan in select cursor.keep_ms, cursor.seq from holdfast.prune_cursor as cursor order by cursor.keep_ms for update skip locked loop
    if removed >= most then
      -- moves to the first outcome that is left, or each look would pass over all that were removed and not yet vacuumed
      update holdfast.prune_cursor
      set seq = coalesce(
        (select own.seq - 1 from holdfast.outcome as own where own.seq > scan.seq and own.seq <= up_to order by own.seq limit 1), scan.seq)
      where prune_cursor.keep_ms = scan.keep_ms;
      continue;
    end if;
    select * into done from holdfast.prune_period(scan.keep_ms, scan.seq, up_to, succeeded_ms, others_ms, read_up_to, cap_at, keys_ms,
      10 * most, most - removed);
    removed := removed + done.removed;
    forced := forced + done.forced;
    is_full := is_full or done.is_full;
    unread_by := coalesce(done.unread_by, unread_by);
  end loop;
  is_full := is_full or exists (select from holdfast.prune_items where prune_items.next_at <= now());
end $$;

-- Schedules. A schedule submits one job per slot. Its row decides: a tick compares and sets next_at, and inserts the job in the same statement.
-- See src/schedule/tick.sql.ts.
create table holdfast.schedule (
  tenant text not null,
  name text not null,
  -- what to submit. Queue, crash budget and, if none is set here, priority are those of the registered kind; the ones here apply if it is unknown
  kind text not null,
  queue text not null,
  crash_budget smallint not null,
  kind_priority smallint not null,
  priority smallint check (priority between 1 and 4),
  -- what the limit of the kind counts its jobs by, computed from the input when the schedule was set
  limit_key text,
  input json not null,
  -- when: a cron pattern in a time zone, or an interval
  cron text,
  every_ms bigint check (every_ms > 0),
  tz text not null default 'UTC',
  jitter_ms bigint not null default 0 check (jitter_ms >= 0),
  starts_at timestamptz,
  ends_at timestamptz,
  missed text not null,
  missed_window_ms bigint not null,
  missed_cap int not null,
  overlap text not null,
  -- the next slot; null if there is none left
  next_at timestamptz,
  -- when to look at it: at its next slot, or later if that slot could not be decided
  due_at timestamptz,
  -- a slot that waits for the job of an earlier one to end
  buffered_at timestamptz,
  -- jobs that a later slot replaced and that are not cancelled yet
  cancel_job_ids uuid[] not null default '{}',
  last_slot_at timestamptz,
  last_job_id uuid,
  paused_at timestamptz,
  paused_by text,
  pause_reason text,
  -- the checksum of the declaration in code that it was last set by; null if it was never declared
  declared text,
  -- when it was changed at run time since the declaration; and for a declared one, when it was removed
  edited_at timestamptz,
  removed_at timestamptz,
  -- why its slot could not be decided, and how often
  problem text,
  failures int not null default 0,
  -- changes with everything but a tick
  revision bigint not null default 1,
  -- how many slots it has decided
  decided bigint not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  updated_by text,
  primary key (tenant, name),
  constraint schedule_timing check ((cron is null) <> (every_ms is null)),
  constraint schedule_missed check (missed in ('skip', 'latest', 'all')),
  constraint schedule_overlap check (overlap in ('skip', 'buffer', 'allow', 'cancel'))
) with (fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

create index schedule_due on holdfast.schedule (due_at) where due_at is not null and paused_at is null;
create index schedule_unfinished on holdfast.schedule (tenant, name) where buffered_at is not null or cancel_job_ids <> '{}';
create index schedule_declared on holdfast.schedule (kind) where declared is not null;

-- What became of each slot. Slots that were skipped together are one row.
create table holdfast.schedule_slot (
  tenant text not null,
  name text not null,
  slot_at timestamptz not null,
  what text not null,
  reason text,
  job_id uuid,
  -- of slots that were skipped together: the last one, and how many they are
  until_at timestamptz,
  slots int not null default 1,
  decided_at timestamptz not null default now(),
  by text,
  primary key (tenant, name, slot_at),
  constraint schedule_slot_what check (what in ('submitted', 'skipped', 'buffered', 'failed', 'triggered', 'backfilled'))
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

create index schedule_slot_job on holdfast.schedule_slot (job_id) where job_id is not null;
create index schedule_slot_age on holdfast.schedule_slot (decided_at);

-- Signals, and the stages that wait for them. A job that waits is queued, and due when its wait ends. See src/transitions/signal.sql.ts.

create table holdfast.signal (
  job_id uuid not null,
  name text not null,
  sent_at timestamptz not null default now(),
  by text,
  payload json,
  -- the first signal of a name counts; later ones change nothing
  primary key (job_id, name)
);

create table holdfast.signal_wait (
  job_id uuid not null,
  stage smallint not null,
  name text not null,
  since timestamptz not null default now(),
  until timestamptz not null,
  -- when the time was over, and no signal had come: from then on, the signal is refused
  closed_at timestamptz,
  primary key (job_id, stage)
);

-- Unique jobs: which job holds a key. Whether the key is taken is asked from the job itself, so no row here can block a key for ever. See
-- src/transitions/unique.sql.ts.

create table holdfast.unique_job (
  tenant text not null,
  kind text not null,
  key text not null,
  job_id uuid not null,
  -- earlier holders that had started when they were replaced, and may still be live
  earlier uuid[] not null default '{}',
  taken_at timestamptz not null default now(),
  -- the key stays taken at least until then, even if its job ends; null if it has no such time
  until timestamptz,
  primary key (tenant, kind, key)
);

create index unique_job_job on holdfast.unique_job (job_id);
create index unique_job_until on holdfast.unique_job (until) where until is not null;

-- Bulk operations. One row each: what was asked for, by whom and why, and how far it has come. Any process with a reaper may carry it on:
-- `term` is the fence of the one that does, and each page of jobs is one transaction with the progress that it makes. See docs/decisions/0047.
create table holdfast.bulk (
  id uuid primary key,
  operation text not null,
  -- null: all tenants
  tenant text,
  -- which jobs, and what the operation does with them, as they were asked for
  filter json not null,
  change json not null,
  asked_at timestamptz not null default now(),
  asked_by text,
  reason text,
  -- jobs per second; null for as fast as it goes
  rate int check (rate > 0),
  -- the end of the log when it was asked for: jobs that were submitted or ended after this are left alone
  seq bigint not null default holdfast.end_of_log(),
  -- how many jobs the preview counted, whether there may be more, and some of them
  expected int not null,
  is_least boolean not null,
  sample uuid[] not null,
  state text not null default 'running' check (state in ('running', 'finished', 'stopped')),
  -- 0 while it walks over the jobs; after that, how often it has gone back to those that were locked
  pass smallint not null default 0,
  -- only jobs below this one are left in this pass; null at its start
  cursor uuid,
  done bigint not null default 0,
  skipped bigint not null default 0,
  term bigint not null default 0,
  -- the process that carries it on, and until when no other may
  holder text,
  lease_until timestamptz not null default now(),
  next_at timestamptz not null default now(),
  moved_at timestamptz not null default now(),
  -- why its last page failed
  error text,
  ended_at timestamptz,
  stopped_by text,
  stop_reason text,
  constraint bulk_end check ((state = 'running') = (ended_at is null))
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

create index bulk_running on holdfast.bulk (next_at) where state = 'running';
create index bulk_tenant on holdfast.bulk (tenant, id);
create index bulk_ended on holdfast.bulk (ended_at) where ended_at is not null;

-- Jobs that a bulk operation matched and left as they were. The list ends at a limit; the count in its row does not.
create table holdfast.bulk_skip (
  bulk_id uuid not null references holdfast.bulk on delete cascade,
  job_id uuid not null,
  reason text not null,
  -- what the database said, if it refused the change
  error text,
  at timestamptz not null default now(),
  primary key (bulk_id, job_id)
);

-- Limits and fairness. What holds the slots of a limit are the leases themselves; nothing here counts them. See src/transitions/gates.sql.ts.

-- A kind or queue whose jobs pass through gates, with its limits: what the code declares, and what was set at run time, which takes precedence.
-- Each has `whole` for all its jobs, `each` for every key, and for a queue `fair` and `weights`. The other columns follow from that.
create table holdfast.limiter (
  scope text not null check (scope in ('kind', 'queue')),
  name text not null,
  declared jsonb not null default '{}',
  chosen jsonb not null default '{}',
  concurrency int generated always as ((coalesce(chosen -> 'whole', declared -> 'whole') ->> 'concurrency')::int) stored,
  rate int generated always as ((coalesce(chosen -> 'whole', declared -> 'whole') -> 'rate' ->> 'limit')::int) stored,
  rate_ms double precision generated always as ((coalesce(chosen -> 'whole', declared -> 'whole') -> 'rate' ->> 'perMs')::double precision) stored,
  key_concurrency int generated always as ((coalesce(chosen -> 'each', declared -> 'each') ->> 'concurrency')::int) stored,
  key_rate int generated always as ((coalesce(chosen -> 'each', declared -> 'each') -> 'rate' ->> 'limit')::int) stored,
  key_rate_ms double precision generated always as ((coalesce(chosen -> 'each', declared -> 'each') -> 'rate' ->> 'perMs')::double precision) stored,
  weights jsonb generated always as (coalesce(chosen -> 'weights', declared -> 'weights')) stored,
  -- a kind, a queue, or a queue whose tenants take turns; then the name
  tag text not null generated always as (
    case when scope = 'kind' then 'k' when coalesce((coalesce(chosen -> 'fair', declared -> 'fair'))::boolean, false) then 'f' else 'q' end || name
  ) stored,
  -- whether every queued job that it applies to was sent to its gate
  is_adopted boolean not null default false,
  -- the transaction that changed it last; older ones may not know of it
  changed_txid xid8 not null default pg_current_xact_id(),
  changed_at timestamptz not null default now(),
  changed_by text,
  primary key (scope, name)
);

-- How much of the rate of a limiter is left. Apart from the limiter, which every submit and every claim reads: while an old snapshot is open, the
-- versions of a row that each claim writes pile up. Tokens of an earlier version of the limiter do not count.
create table holdfast.limiter_bucket (
  scope text not null,
  name text not null,
  changed_txid xid8 not null,
  tokens double precision not null,
  refilled_at timestamptz not null,
  primary key (scope, name)
) with (fillfactor = 50);

-- A limit of one key of a kind, in place of the one that the kind has for each key.
create table holdfast.key_limit (
  kind text not null,
  key text collate "C" not null,
  concurrency int check (concurrency >= 0),
  rate int check (rate >= 1),
  rate_ms double precision check (rate_ms > 0),
  changed_at timestamptz not null default now(),
  changed_by text,
  primary key (kind, key)
);

-- The gate that jobs with the same key wait at. Its row is locked by whoever lets jobs through.
create table holdfast.gate (
  queue text not null,
  kind text not null,
  key text collate "C" not null,
  -- it may have jobs to let through
  is_open boolean not null default false,
  -- when it opens by itself; infinity: only by a hint
  next_at timestamptz not null default 'infinity',
  -- how much it has let through, by weight; the gate with the least is next
  served double precision not null default 0,
  tokens double precision,
  refilled_at timestamptz,
  -- a job was refused by the other side, which asked us to wait
  held_until timestamptz,
  used_at timestamptz not null default now(),
  primary key (queue, kind, key)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.1);

create index gate_turn on holdfast.gate (queue, kind, is_open, served);
create index gate_later on holdfast.gate (queue, kind, next_at) where not is_open and next_at < 'infinity';

-- A gate that should be looked at: a job was queued there, or has left a lease. Inserted by triggers, so that no statement can forget it, and
-- never updated, so that nobody waits for it. One row per gate and transaction.
create table holdfast.gate_hint (
  queue text not null,
  kind text not null,
  key text collate "C" not null,
  txid xid8 not null default pg_current_xact_id(),
  held_until timestamptz,
  primary key (queue, kind, key, txid)
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

create index gate_hint_held on holdfast.gate_hint (queue, kind, key) where held_until is not null;
