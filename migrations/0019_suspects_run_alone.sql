-- A suspect runs alone in its process: a job that lost two workers, or that has one life left. See docs/decisions/0025.
drop index holdfast.live_job_suspect;
create index live_job_suspect on holdfast.live_job (queue, kind, priority, run_at)
  where state = 'queued' and (crashes >= 2 or (crashes = 1 and crash_budget <= 2));

-- Which worker claims nothing until it is empty, so that the suspects of a kind get their turn. One per kind.
create table holdfast.drain (
  queue text not null,
  kind text not null,
  session_id bigint not null,
  -- a worker that no longer looks loses its place
  renewed_at timestamptz not null default now(),
  primary key (queue, kind)
) with (fillfactor = 50);
