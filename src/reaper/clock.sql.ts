import { sql, statement } from '../postgres/sql.ts'

/**
 * The time in the database, in milliseconds since 1970, and for how long sessions or leases could not be written to. It takes the same table
 * locks as a heartbeat and a settle, and changes nothing.
 */
export const readClock = statement<{ now_ms: number; held_up_ms: number }>()(
  'clock.read',
  () => sql`
  with reached as (
    update holdfast.session set pid = pid where false
  ),
  reached_leases as (
    update holdfast.lease set stage = stage where false
  )
  select (extract(epoch from now()) * 1000)::float8 as now_ms, (extract(epoch from clock_timestamp() - now()) * 1000)::float8 as held_up_ms`,
)
