import { type SQL, sql } from 'drizzle-orm'
import type { Queryable } from '../store/store.ts'
import { inTransaction, refused } from '../store/transaction.ts'

/** The part of a Drizzle transaction that is needed; those of node-postgres have it. */
export interface DrizzleTransaction {
  execute(query: SQL): PromiseLike<unknown>
  /** What a transaction has, and a database has not. */
  rollback(): never
}

/** Lets `submit` take part in a Drizzle transaction: `submit(job, input, { tx: fromDrizzle(tx) })`. */
export function fromDrizzle(tx: DrizzleTransaction): Queryable {
  // the types say so, but not in JavaScript
  if (typeof tx?.rollback !== 'function')
    throw refused('is a Drizzle database outside of a transaction; use the tx of db.transaction(…)')
  return inTransaction({
    async query(text, values) {
      // Drizzle numbers parameters itself, in order of appearance; the text repeats none
      const pieces = text.split(/\$\d+/)
      const query = pieces.flatMap((piece, index) =>
        index === 0 ? [sql.raw(piece)] : [sql.param(values[index - 1]), sql.raw(piece)],
      )
      const answer = (await tx.execute(sql.join(query))) as { rows?: unknown[] } | unknown[]
      return { rows: Array.isArray(answer) ? answer : (answer.rows ?? []) }
    },
  })
}
