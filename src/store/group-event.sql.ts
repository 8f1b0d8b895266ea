import type { EventType } from '../job/event-type.ts'
import { raw, type Sql, sql } from './sql.ts'

/**
 * The event about what `changed` of a group of readers, written with the change. Groups read the events of all tenants, so it has a tenant that nobody can
 * be. Only if somebody is named: a group that reads all types reads it, too, and a program that moves its own group need not be told so.
 */
export const announceGroup = (
  type: EventType,
  p: { group: string; seq?: number | null; by: string | null },
): Sql => sql`
  announced as (
    insert into holdfast.event (type, tenant, data)
    select ${raw(`'${type}'`)}, '*', json_strip_nulls(json_build_object('group', ${p.group}::text, 'seq', ${p.seq ?? null}::bigint, 'by', ${p.by}::text))
    where ${p.by}::text is not null and exists (select from changed)
  )`
