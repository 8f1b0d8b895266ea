-- Barriers for executions that another system owns. The parts are the ledger; the count is a cache of it, written with each arrival.

-- A number that is never used twice, not even by a barrier that was removed and opened anew under the same id.
create sequence holdfast.owned_arming;

create table holdfast.owned_barrier (
  id text primary key check (length(id) between 1 and 300),
  -- whose it is; an owner is asked about an execution of that tenant, and of no other
  tenant text,
  arming bigint not null,
  opened_arming bigint not null,
  opened_at timestamptz not null default now(),
  armed_at timestamptz not null default now(),
  moved_at timestamptz not null default now(),
  -- when its count was last compared with the ledger
  checked_at timestamptz not null default now(),
  expires_at timestamptz,
  -- when its expiry is to be dealt with next: at first the expiry itself, then later and later while its owner does not answer
  due_at timestamptz,
  asks smallint not null default 0,
  -- the continuation was fired
  fired_at timestamptz,
  -- it expired with work left, and there was no owner to tell
  expired_at timestamptz,
  total int not null constraint owned_barrier_total check (total >= 0),
  arrived int not null default 0,
  -- tells whether it is opened again with the same parts
  parts_print text not null,
  owner text,
  execution text,
  -- the continuation: the job to submit, under an id that follows from the barrier and its arming
  job_id uuid not null,
  kind text not null,
  queue text not null,
  priority smallint not null check (priority between 1 and 4),
  crash_budget smallint not null,
  delay_ms double precision not null default 0,
  run_at timestamptz,
  input json,
  meta json,
  constraint owned_barrier_owner check ((owner is null) = (execution is null)),
  constraint owned_barrier_end check (fired_at is null or expired_at is null)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The reaper's path. The count stands in no index, so that an arrival is a HOT update of the row that all arrivals share.
create index owned_barrier_open on holdfast.owned_barrier (due_at) where fired_at is null and expired_at is null;

create table holdfast.owned_part (
  barrier_id text not null references holdfast.owned_barrier on delete cascade,
  name text not null check (length(name) between 1 and 300),
  arrived_at timestamptz,
  primary key (barrier_id, name)
) with (fillfactor = 70);

-- How many parts have arrived, by the ledger. Volatile, so that it has a snapshot of its own: a statement that has waited for the
-- barrier's row would otherwise count what it saw before the wait, and of two last arrivals neither would find itself the last.
create function holdfast.owned_arrived(barrier text) returns int language plpgsql volatile as $$
begin
  return (select count(*) from holdfast.owned_part where barrier_id = barrier and arrived_at is not null);
end $$;

-- What the database itself refuses, whoever writes: a fired barrier that is open again, an arming that goes back, an arrival undone.
create function holdfast.refuse_owned() returns trigger language plpgsql as $$
begin
  raise exception 'holdfast: a barrier never un-fires, its arming never goes back, and a part that arrived has arrived'
    using errcode = 'check_violation';
end $$;

create trigger owned_fence before update on holdfast.owned_barrier for each row
when (new.id <> old.id or new.arming < old.arming or (old.fired_at is not null and new.fired_at is distinct from old.fired_at))
execute function holdfast.refuse_owned();

create trigger owned_arrival before update on holdfast.owned_part for each row
when (old.arrived_at is not null and new.arrived_at is distinct from old.arrived_at)
execute function holdfast.refuse_owned();
