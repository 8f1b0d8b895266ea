import { type SQL, sql } from 'drizzle-orm'
import type { Queryable } from '../store/store.ts'

/** The part of a Drizzle transaction that is needed; those of node-postgres have it. */
export interface DrizzleTransaction {
  execute(query: SQL): PromiseLike<unknown>
}

/** Lets `submit` take part in a Drizzle transaction: `submit(job, input, { tx: fromDrizzle(tx) })`. */
export function fromDrizzle(tx: DrizzleTransaction): Queryable {
  return {
    async query(text, values) {
      // Drizzle numbers parameters itself, in order of appearance; the text repeats none
      const pieces = text.split(/\$\d+/)
      const query = pieces.flatMap((piece, index) =>
        index === 0 ? [sql.raw(piece)] : [sql.param(values[index - 1]), sql.raw(piece)],
      )
      const answer = (await tx.execute(sql.join(query))) as { rows?: unknown[] } | unknown[]
      return { rows: Array.isArray(answer) ? answer : (answer.rows ?? []) }
    },
  }
}
