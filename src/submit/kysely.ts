import { CompiledQuery, type Transaction } from 'kysely'
import type { Queryable } from '../store/store.ts'

/** Lets `submit` take part in a Kysely transaction: `submit(job, input, { tx: fromKysely(trx) })`. */
export function fromKysely<Database>(trx: Transaction<Database>): Queryable {
  return {
    async query(text, values) {
      const { rows } = await trx.executeQuery(CompiledQuery.raw(text, values))
      return { rows }
    },
  }
}
