import type { EventType } from '../job/event-type.ts'
import { raw, type Sql, sql } from '../postgres/sql.ts'

/**
 * Announces what `changed` in a group of readers, together with the change. Groups read the events of all tenants, so the event has a tenant
 * that no caller can have. It is written only if `by` is known: a group that reads all types gets it too, and a program that moves its own
 * group need not hear about that.
 */
export const announceGroup = (
  type: EventType,
  p: { group: string; seq?: number | null; by: string | null },
): Sql => sql`
  announced as (
    insert into holdfast.event_log (type, tenant, data)
    select ${raw(`'${type}'`)}, '*', json_strip_nulls(json_build_object('group', ${p.group}::text, 'seq', ${p.seq ?? null}::bigint, 'by', ${p.by}::text))
    where ${p.by}::text is not null and exists (select from changed)
  )`
