import { sql, statement } from './sql.ts'

/**
 * Fails with 25P01 outside of a transaction and changes nothing inside of one: it takes the weakest lock on a table that what follows
 * locks anyway. No function of the server says whether a transaction is open; an id is given only to one that has written already.
 */
export const mustBeInTransaction = statement<never>()(
  'transaction.check',
  () => sql`lock table holdfast.ready in access share mode`,
)
