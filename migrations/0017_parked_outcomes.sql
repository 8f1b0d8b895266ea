-- Outcomes that the database refused in every form: kept here with the reason, and tried again, while their jobs wait without being run.
-- See docs/decisions/0023.
create table holdfast.parked_outcome (
  job_id uuid primary key,
  attempt integer not null,
  session_id bigint not null,
  -- as JSON text: what is refused may be the JSON itself
  outcome text not null,
  reason text not null,
  tries integer not null default 0,
  parked_at timestamptz not null default now(),
  next_at timestamptz not null default now()
);

create index parked_outcome_due on holdfast.parked_outcome (next_at);
