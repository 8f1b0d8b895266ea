import { type Sql, sql } from './sql.ts'

/**
 * The event about the queues in `changed`, written with the change. Queues belong to all tenants, so it has a tenant that nobody can be, and only keys for
 * all tenants see it.
 */
export const announceQueue = (type: Sql, p: { by?: string | null; reason?: string | null }): Sql => sql`
  announced as (
    insert into holdfast.event (type, tenant, data)
    select ${type}, '*', json_strip_nulls(json_build_object('queue', name, 'by', ${p.by ?? null}::text, 'reason', ${p.reason ?? null}::text))
    from changed
  )`
