-- An outage, or a cut that ends, is nobody's crash. See docs/decisions/0024.

-- Since when somebody has led without a gap: before that, sessions could not renew their leases either.
alter table holdfast.leader add column steady_since timestamptz not null default '-infinity';

-- When a worker whose session had been ended was heard of again, and when the crashes counted against its jobs were taken back.
alter table holdfast.session add column came_back_at timestamptz;
alter table holdfast.session add column cleared_at timestamptz;
create index session_came_back on holdfast.session (id) where came_back_at is not null and cleared_at is null;

-- Finds what a session lost. Hardly a row of the log is in here.
create index event_lost on holdfast.event (session_id) where type = 'job.revived';
