import { raw, type Sql } from './sql.ts'

/**
 * A column of the kind of a row, as the rule that applies to its tenant says: that of all tenants, whose name is empty and so comes first,
 * or else its own. Null if nobody has registered the kind.
 */
export function ofKind(column: 'stages', row: string): Sql {
  return raw(`(
      select kind.${column} from holdfast.kind where kind.tenant in ('', ${row}.tenant) and kind.name = ${row}.kind order by kind.tenant limit 1
    )`)
}
