import type { MoveName } from '../job/machine.ts'
import { eventOf, raw, type Sql, sql } from './sql.ts'

/**
 * Keeps what every source said about rows when they were settled, as a CTE. `source` has id and attempt. The facts are read by a stable
 * function, which sees the database as it was before the statement; and whatever goes wrong there is kept in place of them.
 */
export function snapshotting(move: MoveName, source: string): Sql {
  return sql`snapshot as (
    insert into holdfast.snapshot (job_id, attempt, event, facts)
    select id, attempt, ${eventOf(move)}, holdfast.snapshot_of(id)
    from ${raw(source)}
    on conflict (job_id, attempt) do nothing
  )`
}
