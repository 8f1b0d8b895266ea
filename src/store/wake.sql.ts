import { raw, type Sql, sql } from './sql.ts'

/** Sends a notification. Answers text: some libraries, in whose transactions we run, can't read the type that pg_notify answers. */
export function notify(channel: 'holdfast_wake' | 'holdfast_abort' | 'holdfast_event', payload = "''"): Sql {
  return raw(`pg_notify('${channel}', ${payload})::text`)
}

/** Wakes workers, but only if one asked for it: every NOTIFY takes a lock that all commits share. Runs once per statement. */
export const wakeIdle = sql`(
    select ${notify('holdfast_wake')}
    from holdfast.session
    where wants_wake and ended_at is null
    limit 1
  )`
