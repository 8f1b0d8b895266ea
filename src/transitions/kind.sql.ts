import { raw, type Sql } from '../postgres/sql.ts'

/**
 * A column of the kind of a row, from the rule that applies to its tenant: the one for all tenants, whose name is empty and so comes first,
 * or else the tenant's own. Null if the kind is not registered.
 */
export function ofKind(column: 'stages', row: string): Sql {
  return raw(`(
      select kind.${column} from holdfast.kind where kind.tenant in ('', ${row}.tenant) and kind.name = ${row}.kind order by kind.tenant limit 1
    )`)
}
