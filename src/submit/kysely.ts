import { CompiledQuery, type Transaction } from 'kysely'
import type { Queryable } from '../postgres/store.ts'
import { inTransaction, refused } from '../postgres/transaction.ts'

/** Lets `submit` take part in a Kysely transaction: `submit(job, input, { tx: fromKysely(trx) })`. */
export function fromKysely<Database>(trx: Transaction<Database>): Queryable {
  // the types ensure this, but not in JavaScript
  if (!trx?.isTransaction)
    throw refused('is a Kysely instance outside a transaction; use the trx from db.transaction().execute(…)')
  return inTransaction({
    async query(text, values) {
      const { rows } = await trx.executeQuery(CompiledQuery.raw(text, values))
      return { rows }
    },
  })
}
