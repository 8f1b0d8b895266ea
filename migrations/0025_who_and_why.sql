-- What `why` needs to name causes: who paused a queue and for what reason, how a worker process ended, and how many jobs go before another.

alter table holdfast.queue add column paused_by text, add column pause_reason text;

-- the signal or exit code of its process, as its supervisor saw it
alter table holdfast.session add column exit text;

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
  select live.* into job from holdfast.live_job as live
  where live.id = wanted and live.state = 'queued' and live.run_at <= now();
  if not found then
    return null;
  end if;
  -- each priority by itself: together they would be one range of the index, and all that is scheduled behind this job part of it
  select count(*) into more_urgent from (
    select
    from generate_series(1, job.priority - 1) as rank (priority)
    cross join lateral (
      select from holdfast.live_job as other
      where other.state = 'queued' and other.queue = job.queue and other.kind = job.kind and other.priority = rank.priority and other.run_at <= now()
      limit most
    ) as before
    limit most
  ) as few;
  select count(*) into earlier from (
    select from holdfast.live_job as other
    where other.state = 'queued' and other.queue = job.queue and other.kind = job.kind and other.priority = job.priority and other.run_at < job.run_at
    limit most
  ) as few;
  select count(*) filter (where few.id < wanted) into tied from (
    select other.id from holdfast.live_job as other
    where other.state = 'queued' and other.queue = job.queue and other.kind = job.kind and other.priority = job.priority and other.run_at = job.run_at
    limit walked
  ) as few;
  return least(most, more_urgent + earlier + tied);
end $$;
