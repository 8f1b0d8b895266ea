import { raw, type Sql, sql } from '../postgres/sql.ts'

/** The last event of that job that the group `own` wants. The group `webhooks` wants what an endpoint or the job's own webhook asks for. */
const wantedSeq = (id: Sql) => sql`case when own.name = 'webhooks' then greatest(
            (
              select max(event.seq)
              from holdfast.event
              join holdfast.job_webhook as hook on hook.job_id = event.job_id
              where event.job_id = ${id} and event.type = any(hook.types)
            ),
            (
              select max(event.seq)
              from holdfast.event
              join holdfast.endpoint on endpoint.tenant = event.tenant
              where event.job_id = ${id} and endpoint.tenant = job.tenant and event.type = any(endpoint.types) and event.seq > endpoint.since_seq
                and (endpoint.items or job.barrier_id is null)
            )
          ) else (
            select max(event.seq) from holdfast.event where event.job_id = ${id} and (own.types is null or event.type = any(own.types))
          ) end`

/** How far the groups have read in the partition of that job. */
export function groups(id: Sql): Sql {
  return sql`coalesce(case when job.id is not null then (
      select json_agg(json_build_object('name', reader.name, 'seq', reader.seq, 'wantedSeq', reader.wanted_seq, 'hasReader', reader.reader_id is not null,
        'readerUntil', reader.lease_until, 'movedAt', reader.moved_at, 'crashes', reader.crashes, 'failingSeq', reader.failing_seq,
        'failures', reader.failures, 'error', left(reader.error, 500), 'isParked', reader.is_parked) order by reader.name)
      from (
        select own.name, cursor.seq, cursor.reader_id, live.lease_until, cursor.moved_at, cursor.crashes, cursor.failing_seq, cursor.failures, cursor.error,
          exists (
            select
            from holdfast.event
            join holdfast.parked_event as parked on parked.group_name = own.name and parked.seq = event.seq
            where event.job_id = ${id}
          ) as is_parked,
          ${wantedSeq(id)} as wanted_seq
        from holdfast.event_group as own
        join holdfast.event_cursor as cursor on cursor.group_name = own.name and cursor.partition = (uuid_hash(${id}) & 2147483647) % own.partitions
        left join holdfast.event_reader as live on live.id = cursor.reader_id
        limit 50
      ) as reader
    ) end, '[]')`
}

/** The webhooks about that job. */
export function deliveries(id: Sql): Sql {
  return sql`case when job.id is not null then (
      select json_build_object('pending', count(*) filter (where sent.state = 'pending'), 'delivered', count(*) filter (where sent.state = 'delivered'),
        'dead', count(*) filter (where sent.state = 'dead'),
        'oldestPending', (array_agg(json_build_object('id', sent.id, 'type', sent.type, 'nextAt', sent.next_at, 'claimedAt', sent.claimed_at,
          'tries', sent.tries, 'failures', sent.failures, 'error', left(sent.error, 500), 'isOff', sent.is_off) order by sent.next_at)
          filter (where sent.state = 'pending'))[1],
        'lastDead', (array_agg(json_build_object('id', sent.id, 'type', sent.type, 'error', left(sent.error, 500), 'status', sent.status,
          'endedAt', sent.ended_at, 'isOff', sent.is_off) order by sent.ended_at desc) filter (where sent.state = 'dead'))[1])
      from (
        select delivery.*, delivery.endpoint_id is not null and (endpoint.id is null or endpoint.disabled_at is not null) as is_off
        from (select * from holdfast.delivery where delivery.job_id = ${id} order by delivery.id desc limit 1000) as delivery
        left join holdfast.endpoint on endpoint.id = delivery.endpoint_id
      ) as sent
    ) end`
}

/** The oldest transaction that has written, which readers of events wait for. */
export const oldestWriter: Sql = raw(`case when job.id is not null then (
      select json_build_object('pid', writer.pid, 'since', writer.xact_start, 'application', writer.application_name)
      from pg_stat_activity as writer
      where writer.backend_xid is not null and writer.pid <> pg_backend_pid() and writer.datname = current_database()
      order by writer.xact_start
      limit 1
    ) end`)
