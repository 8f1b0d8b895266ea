import { raw, type Sql, sql } from '../postgres/sql.ts'

/**
 * Sends a notification. Returns text: some libraries in whose transactions we run can't read the void that pg_notify returns. Sends none
 * once the server's notification queue is half full because a listener does not read. Every commit that notifies fails once it is full,
 * and polling backs up notifications anyway.
 */
export function notify(channel: 'holdfast_wake' | 'holdfast_abort' | 'holdfast_event', payload = "''"): Sql {
  return raw(`case when pg_notification_queue_usage() < 0.5 then pg_notify('${channel}', ${payload})::text end`)
}

/** Wakes workers, but only if one asked for it: every NOTIFY takes a lock that all commits share. Runs once per statement. */
export const wakeIdle = sql`(
    select ${notify('holdfast_wake')}
    from holdfast.session
    where wants_wake and ended_at is null
    limit 1
  )`
