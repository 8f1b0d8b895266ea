-- Live jobs: few and hot. A settle that ends a job moves its row to finished_job, so a claim never meets a finished row.
create table holdfast.live_job (
  id uuid primary key,
  run_at timestamptz not null,
  deadline_at timestamptz,
  submitted_at timestamptz not null,
  session_id bigint,
  attempt int not null default 0 check (attempt >= 0),
  stage smallint not null default 0 check (stage >= 0),
  failures smallint not null default 0,
  crashes smallint not null default 0,
  crash_budget smallint not null,
  priority smallint not null check (priority between 1 and 4),
  state text not null,
  kind text not null,
  queue text not null,
  tenant text not null
) with (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.1
);

-- The claim's path: one range per lane (queue, kind, priority) that ends at now(), so that scheduled rows and rows of other
-- lanes are never visited. Without the id, the entries of one bulk submit are duplicates, which a b-tree folds into few bytes.
create index live_job_lane on holdfast.live_job (queue, kind, priority, run_at) where state = 'queued';

-- The reaper's path: all attempts of a session, and its attempts past their deadline.
create index live_job_session on holdfast.live_job (session_id, deadline_at) where session_id is not null;

create table holdfast.finished_job (
  id uuid primary key,
  submitted_at timestamptz not null,
  finished_at timestamptz not null,
  attempt int not null,
  stage smallint not null,
  failures smallint not null,
  crashes smallint not null,
  crash_budget smallint not null,
  priority smallint not null,
  state text not null,
  kind text not null,
  queue text not null,
  tenant text not null,
  error json
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

-- What went wrong is looked for often and is rare; what went well is found by id.
create index finished_job_trouble on holdfast.finished_job (state, id) where state <> 'succeeded';

-- Inputs and outputs stand apart, so that a change of state does not rewrite them.
create table holdfast.job_payload (
  job_id uuid primary key,
  input json,
  meta json
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

-- The log of changes: written in the transaction of the change, never updated.
-- txid lets a reader tell which lower rows may still commit; a bare sequence cannot.
create table holdfast.event (
  seq bigint generated always as identity,
  txid xid8 not null default pg_current_xact_id(),
  at timestamptz not null default now(),
  job_id uuid not null,
  session_id bigint,
  attempt int not null,
  stage smallint not null,
  type text not null,
  kind text not null,
  tenant text not null,
  data json,
  primary key (job_id, seq)
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

create table holdfast.kind (
  name text primary key,
  queue text not null,
  priority smallint not null,
  crash_budget smallint not null,
  stages json not null,
  seen_at timestamptz not null default now()
);

-- A queue has a row only once somebody paused it.
create table holdfast.queue (
  name text primary key,
  paused_at timestamptz
);
