import { sql, statement } from './sql.ts'

/** Returns the backend that serves this connection at the moment. */
export const nameBackend = statement<{ backend: number }>()(
  'backend.name',
  (_: object) => sql`
  select pg_backend_pid() as backend`,
)
