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
  ended_by text
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

create index session_living on holdfast.session (id) where ended_at is null;

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
