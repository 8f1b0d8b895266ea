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
  unique (job_id, stage)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The reaper's path: barriers that still have something to do.
create index barrier_open on holdfast.barrier (id) where joined_at is null;

-- barrier_id: the barrier that this job is an item of. is_part: it runs the `each` of its parent's stage, not a kind of its own.
-- is_flawed: some items of an earlier stage failed within the threshold, so the job can end partial at best.
alter table holdfast.live_job
  add column barrier_id uuid,
  add column position int,
  add column is_part boolean not null default false,
  add column is_flawed boolean not null default false;

alter table holdfast.finished_job
  add column barrier_id uuid,
  add column position int,
  add column is_part boolean not null default false,
  add column is_flawed boolean not null default false;

create index live_job_item on holdfast.live_job (barrier_id, position) where barrier_id is not null;
create index finished_job_item on holdfast.finished_job (barrier_id, position) where barrier_id is not null;

-- The reaper's path: the few jobs that wait, to see that a barrier will join each.
create index live_job_waiting on holdfast.live_job (id) where state = 'waiting';

alter table holdfast.job_payload add column item_key text;
