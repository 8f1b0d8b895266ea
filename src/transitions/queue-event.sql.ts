import { type Sql, sql } from '../postgres/sql.ts'

/**
 * Announces changes of the queues in `changed`, together with the change. Queues belong to all tenants, so the event has a tenant that no caller
 * can have, and only keys for all tenants see it.
 */
export const announceQueue = (type: Sql, p: { by?: string | null; reason?: string | null }): Sql => sql`
  announced as (
    insert into holdfast.event_log (type, tenant, data)
    select ${type}, '*', json_strip_nulls(json_build_object('queue', name, 'by', ${p.by ?? null}::text, 'reason', ${p.reason ?? null}::text))
    from changed
  )`
