-- The log of changes in partitions by time, so that what is old is dropped whole; and its groups of readers.
alter table holdfast.event rename to event_before;
alter table holdfast.event_before drop constraint event_pkey;
alter table holdfast.event_before alter column seq drop identity;
alter table holdfast.event_before alter column job_id drop not null;
alter table holdfast.event_before alter column kind drop not null;
alter table holdfast.event_before add column state text;

create sequence holdfast.event_seq;
select setval('holdfast.event_seq', greatest(1, max(seq)), max(seq) is not null) from holdfast.event_before;

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

-- What was told before this migration becomes the first partition.
do $$
declare
  cut timestamptz := date_trunc('hour', now()) + interval '1 hour';
begin
  if exists (select from holdfast.event_before) then
    alter table holdfast.event_before alter column seq set not null;
    execute format('alter table holdfast.event attach partition holdfast.event_before for values from (minvalue) to (%L)', cut);
    insert into holdfast.event_partition (name, from_at, to_at)
      values ('event_before', (select min(at) from holdfast.event_before), cut);
  else
    drop table holdfast.event_before;
  end if;
  perform holdfast.lay_event_partitions(interval '3 days', interval '3 days');
end $$;
