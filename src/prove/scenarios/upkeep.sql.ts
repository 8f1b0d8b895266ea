import { sql, statement } from '../../postgres/sql.ts'

/** Inserts an old row of everything that expires: reader, delivery, job, items of a removed job, snapshot, end of a barrier, key, kind. */
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
  key as (
    insert into holdfast.job_key (tenant, key, job_id, fingerprint, ended_at, state)
    values ('gone', 'gone', gen_random_uuid(), '', now() - interval '400 days', 'succeeded')
    on conflict do nothing
  ),
  ended (job_id, barrier_id) as (
    values (gen_random_uuid(), null::uuid), (gen_random_uuid(), gen_random_uuid())
  ),
  job as (
    insert into holdfast.job (id, submitted_at, crash_budget, priority, kind, queue, tenant, input, barrier_id, position)
    select job_id, now() - interval '400 days', 3, 2, 'gone', 'gone', 'gone', 'null', barrier_id, case when barrier_id is not null then 0 end
    from ended
  ),
  outcome as (
    insert into holdfast.outcome (job_id, finished_at, attempt, stage, failures, crashes, is_flawed, state, kind, tenant, barrier_id)
    select job_id, now() - interval '400 days', 1, 0, 0, 0, false, 'succeeded', 'gone', 'gone', barrier_id
    from ended
  ),
  items as (
    insert into holdfast.prune_items (barrier_id)
    select barrier_id
    from ended
    where barrier_id is not null
  ),
  bulk as (
    insert into holdfast.bulk (id, operation, filter, change, expected, is_least, sample, state, ended_at)
    values (gen_random_uuid(), 'cancel', '{}', '{}', 0, false, '{}', 'finished', now() - interval '400 days')
  ),
  kind as (
    insert into holdfast.kind (tenant, name, queue, priority, crash_budget, stages, seen_at)
    values ('gone', 'gone', 'gone', 2, 3, '[]', now() - interval '400 days')
    on conflict (tenant, name) do update set seen_at = excluded.seen_at
  )
  insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, state, body, ended_at)
  values (0, 'evt__0', 'webhook.disabled', 'default', 'gone', 'dead', '{}', now() - interval '30 days')`,
)

/** Adds a partition that should have been dropped years ago and removes the latest one, as if there had been no leader for long. */
export const neglectLog = statement<never>()(
  'prove.neglect_log',
  () => sql`
  do $$
  declare
    latest text;
  begin
    create table if not exists holdfast.event_old partition of holdfast.event_log for values from ('2020-01-01Z') to ('2020-01-02Z');
    insert into holdfast.event_partition (name, from_at, to_at) values ('event_old', '2020-01-01Z', '2020-01-02Z')
      on conflict (name) do update set dropped_at = null;
    insert into holdfast.event_log (type, tenant, at) values ('webhook.disabled', 'default', '2020-01-01 12:00Z');
    select name into latest from holdfast.event_partition where dropped_at is null order by to_at desc limit 1;
    execute format('drop table holdfast.%I', latest);
    delete from holdfast.event_partition where name = latest;
  end $$`,
)

/** What the leader has not cleaned up yet. */
export const neglected = statement<{ what: string }>()(
  'prove.neglected',
  () => sql`
  select 'an old reader is left' as what from holdfast.event_reader where group_name = 'gone'
  union all
  select 'an old delivery is left' from holdfast.delivery where lane = 'gone'
  union all
  select 'an old snapshot is left' from holdfast.snapshot where attempt = 0
  union all
  select 'the old end of a barrier is left' from holdfast.owned_end where barrier_id = 'gone'
  union all
  select 'an old job is left' from holdfast.job where kind = 'gone'
  union all
  select 'items of a removed job are left' from holdfast.prune_items
  union all
  select 'an old key is left' from holdfast.job_key where key = 'gone'
  union all
  select 'an old bulk operation is left' from holdfast.bulk
  union all
  select 'an old kind is left' from holdfast.kind where name = 'gone'
  union all
  select 'an old partition is left' where to_regclass('holdfast.event_old') is not null
  union all
  select 'the partitions of the next days are missing'
  where not exists (select from holdfast.event_partition where dropped_at is null and to_at > now() + interval '70 hours')`,
)
