import { sql, statement } from './sql.ts'

/**
 * Fails with 25P01 outside a transaction, and changes nothing inside one: it takes the weakest lock on a table that the next statement locks
 * anyway. Postgres has no function that shows whether a transaction is open, and assigns an id only to one that has written.
 */
export const mustBeInTransaction = statement<never>()(
  'transaction.check',
  () => sql`lock table holdfast.ready in access share mode`,
)
