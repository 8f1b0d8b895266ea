import { type SQL, sql } from 'drizzle-orm'
import type { Queryable } from '../postgres/store.ts'
import { inTransaction, refused } from '../postgres/transaction.ts'

/** The part of a Drizzle transaction that Holdfast needs. Transactions of the node-postgres driver have it. */
export interface DrizzleTransaction {
  /** Runs one statement. */
  execute(query: SQL): PromiseLike<unknown>
  /** Distinguishes a transaction from a database object, which has no such method. */
  rollback(): never
}

/** Lets `submit` take part in a Drizzle transaction: `submit(job, input, { tx: fromDrizzle(tx) })`. */
export function fromDrizzle(tx: DrizzleTransaction): Queryable {
  // the types ensure this, but not in JavaScript
  if (typeof tx?.rollback !== 'function')
    throw refused('is a Drizzle database outside a transaction; use the tx from db.transaction(…)')
  return inTransaction({
    async query(text, values) {
      // Drizzle numbers parameters itself, in order of appearance; our text uses each only once
      const pieces = text.split(/\$\d+/)
      const query = pieces.flatMap((piece, index) =>
        index === 0 ? [sql.raw(piece)] : [sql.param(values[index - 1]), sql.raw(piece)],
      )
      const answer = (await tx.execute(sql.join(query))) as { rows?: unknown[] } | unknown[]
      return { rows: Array.isArray(answer) ? answer : (answer.rows ?? []) }
    },
  })
}
