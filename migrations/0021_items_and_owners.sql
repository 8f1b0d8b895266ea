-- Whether a group wants the events of the items of fan-outs, too: there may be millions of them.
alter table holdfast.event_group add column items boolean not null default false;

-- Why its producer gave up, if it did so after it had given items: there may be fewer of them than were meant.
alter table holdfast.barrier add column short json;

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
