import { sql, statement } from '../store/sql.ts'

/** A reader and a delivery that ended long ago, and a snapshot, the end of a barrier and a kind of then. */
export const leaveOldRows = statement<never>()(
  'prove.leave_old_rows',
  () => sql`
  with reader as (
    insert into holdfast.event_reader (id, group_name, host, pid, lease_until)
    values (gen_random_uuid(), 'gone', 'nowhere', 1, now() - interval '30 days')
  ),
  snapshot as (
    insert into holdfast.snapshot (job_id, attempt, at, event, facts)
    values (gen_random_uuid(), 0, now() - interval '400 days', 'job.failed', '{}')
  ),
  owned_end as (
    insert into holdfast.owned_end (job_id, barrier_id, arming, kind, word, total, arrived, opened_at, armed_at, asks, is_rearmed, ended_at)
    values (gen_random_uuid(), 'gone', 0, 'gone', 'gone', 1, 0, now(), now(), 1, false, now() - interval '30 days')
  ),
  kind as (
    insert into holdfast.kind (tenant, name, queue, priority, crash_budget, stages, seen_at)
    values ('gone', 'gone', 'gone', 2, 3, '[]', now() - interval '400 days')
    on conflict (tenant, name) do update set seen_at = excluded.seen_at
  )
  insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, state, body, ended_at)
  values (0, 'evt__0', 'webhook.disabled', 'default', 'gone', 'dead', '{}', now() - interval '30 days')`,
)

/** The log of years ago is still there, and none is laid for the days to come: what a leader that was away for long may find. */
export const neglectLog = statement<never>()(
  'prove.neglect_log',
  () => sql`
  do $$
  declare
    latest text;
  begin
    create table if not exists holdfast.event_old partition of holdfast.event for values from ('2020-01-01Z') to ('2020-01-02Z');
    insert into holdfast.event_partition (name, from_at, to_at) values ('event_old', '2020-01-01Z', '2020-01-02Z')
      on conflict (name) do update set dropped_at = null;
    insert into holdfast.event (type, tenant, at) values ('webhook.disabled', 'default', '2020-01-01 12:00Z');
    select name into latest from holdfast.event_partition where dropped_at is null order by to_at desc limit 1;
    execute format('drop table holdfast.%I', latest);
    delete from holdfast.event_partition where name = latest;
  end $$`,
)

/** What a leader should have seen to, and has not yet. */
export const neglected = statement<{ what: string }>()(
  'prove.neglected',
  () => sql`
  select 'a reader of long ago is remembered' as what from holdfast.event_reader where group_name = 'gone'
  union all
  select 'a delivery of long ago is remembered' from holdfast.delivery where lane = 'gone'
  union all
  select 'a snapshot of long ago is remembered' from holdfast.snapshot where attempt = 0
  union all
  select 'the end of a barrier of long ago is remembered' from holdfast.owned_end where barrier_id = 'gone'
  union all
  select 'a kind of long ago is remembered' from holdfast.kind where name = 'gone'
  union all
  select 'the log of years ago is kept' where to_regclass('holdfast.event_old') is not null
  union all
  select 'the log of the days to come is not laid'
  where not exists (select from holdfast.event_partition where dropped_at is null and to_at > now() + interval '70 hours')`,
)
