import { sql, statement } from '../store/sql.ts'

/** What time it is in the database, in milliseconds since 1970. */
export const readClock = statement<{ now_ms: number }>()(
  'clock.read',
  () => sql`
  select (extract(epoch from now()) * 1000)::float8 as now_ms`,
)
