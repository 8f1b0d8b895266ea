-- Why a job does not move: what every source of truth says about it, at this moment and at each settle that went badly.

-- Finds the barrier whose continuation a job is. An arrival changes no column of it, so it stays a HOT update.
create index owned_barrier_job on holdfast.owned_barrier (job_id);

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
  select live.id, live.kind, live.queue, live.tenant, live.state, live.stage, live.attempt, live.failures, live.crashes, live.crash_budget,
    live.priority, live.submitted_at, live.run_at, live.deadline_at, live.session_id, null::timestamptz as finished_at, null::json as error,
    live.barrier_id, live.position, live.is_part, live.is_flawed into job
  from holdfast.live_job as live where live.id = wanted;
  if not found then
    select ended.id, ended.kind, ended.queue, ended.tenant, ended.state, ended.stage, ended.attempt, ended.failures, ended.crashes,
      ended.crash_budget, ended.priority, ended.submitted_at, null::timestamptz as run_at, null::timestamptz as deadline_at,
      null::bigint as session_id, ended.finished_at, ended.error, ended.barrier_id, ended.position, ended.is_part, ended.is_flawed into job
    from holdfast.finished_job as ended where ended.id = wanted;
  end if;

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
          select count(*) from (select from holdfast.live_job as held where held.session_id = session.id limit 1000) as few
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
        select from holdfast.live_job as other
        where other.state = 'queued' and other.queue = job.queue and other.kind = job.kind and other.priority = rank.priority
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
      'cancelled', barrier.cancelled, 'hasLive', exists (select from holdfast.live_job as item where item.barrier_id = barrier.id),
      'ledger', case when is_asked and barrier.joined_at is null then (
        select json_build_object('queued', coalesce(sum(n) filter (where state = 'queued'), 0), 'running', coalesce(sum(n) filter (where state = 'running'), 0),
          'waiting', coalesce(sum(n) filter (where state = 'waiting'), 0), 'succeeded', coalesce(sum(n) filter (where state in ('succeeded', 'partial')), 0),
          'failed', coalesce(sum(n) filter (where state = 'failed'), 0), 'cancelled', coalesce(sum(n) filter (where state = 'cancelled'), 0),
          'isWhole', coalesce(bool_and(whole), true))
        from (
          select state, count(*) as n, sum(count(*)) over () <= most as whole from (
            select item.state from holdfast.live_job as item where item.barrier_id = barrier.id limit most + 1
          ) as live group by state
          union all
          select state, count(*), sum(count(*)) over () <= most from (
            select item.state from holdfast.finished_job as item where item.barrier_id = barrier.id limit most + 1
          ) as ended group by state
        ) as counted
      ) end,
      'stragglers', case when is_asked and barrier.joined_at is null then (
        select json_agg(json_build_object('id', late.id, 'key', payload.item_key, 'state', late.state, 'attempt', late.attempt, 'crashes', late.crashes,
          'deadlineAt', late.deadline_at) order by late.deadline_at nulls last)
        from (
          select * from (select * from holdfast.live_job as item where item.barrier_id = barrier.id limit 1000) as few
          order by few.deadline_at nulls last limit 5
        ) as late
        left join holdfast.job_payload as payload on payload.job_id = late.id
      ) end) order by barrier.stage) into facts_barriers
    from holdfast.barrier where barrier.job_id = wanted;
  end if;

  if job.barrier_id is not null then
    select json_build_object('barrierId', job.barrier_id, 'position', job.position, 'isThere', barrier.id is not null, 'jobId', barrier.job_id,
      'stage', barrier.stage, 'total', barrier.total, 'succeeded', barrier.succeeded, 'failed', barrier.failed, 'cancelled', barrier.cancelled,
      'joinedAt', barrier.joined_at, 'stoppedAt', barrier.stopped_at, 'expiresAt', barrier.expires_at,
      'parentState', coalesce((select live.state from holdfast.live_job as live where live.id = barrier.job_id),
        (select ended.state from holdfast.finished_job as ended where ended.id = barrier.job_id))) into facts_item
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
    'kind', (select json_build_object('stages', json_array_length(kind.stages), 'queue', kind.queue, 'seenAt', kind.seen_at)
      from holdfast.kind where kind.name = job.kind),
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
