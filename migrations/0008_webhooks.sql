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
-- The sender's path: from lane to lane, and in each what is due.
create index delivery_due on holdfast.delivery (lane, next_at) where state = 'pending';
create index delivery_dead on holdfast.delivery (id) where state = 'dead';
create index delivery_ended on holdfast.delivery (ended_at) where ended_at is not null;
create index delivery_endpoint on holdfast.delivery (endpoint_id, id) where endpoint_id is not null;
create index delivery_job on holdfast.delivery (job_id, id) where job_id is not null;

-- The trace that the submit was part of, as W3C traceparent.
alter table holdfast.job_payload add column trace text;
