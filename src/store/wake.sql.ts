import { sql } from './sql.ts'

/** Wakes workers, but only if one asked for it: every NOTIFY takes a lock that all commits share. Runs once per statement. */
export const wakeIdle = sql`(
    select pg_notify('holdfast_wake', '')
    from holdfast.session
    where wants_wake and ended_at is null
    limit 1
  )`
