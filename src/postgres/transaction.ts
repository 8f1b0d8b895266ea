import { HoldfastError } from '../errors/errors.ts'
import { type Queryable, type Runner, runnerIn } from './store.ts'
import { mustBeInTransaction } from './transaction.sql.ts'

/** Transactions that an adapter vouches for, so that there is no need to ask the server. */
const adapted = new WeakSet<object>()

/** Marks an adapter as an open transaction: the library that opened it says so. */
export function inTransaction(tx: Queryable): Queryable {
  adapted.add(tx)
  return tx
}

/**
 * A runner inside a transaction that the caller owns. Throws if no transaction is open: what should commit with the caller's own rows would
 * commit at once, and nobody would notice until a rollback.
 */
export async function runnerInside(tx: Queryable): Promise<Runner> {
  const runner = runnerIn(tx)
  const problem = shapeProblem(tx)
  if (problem) throw refused(problem)
  if (adapted.has(tx) || isOpen(tx)) return runner
  await runner.run(mustBeInTransaction, {}).catch((error) => {
    throw saysNoTransaction(error) ? refused('is not inside a transaction; run `begin` on it first') : error
  })
  return runner
}

function shapeProblem(tx: unknown): string | undefined {
  if (typeof tx !== 'object' || tx === null) return `is ${tx === null ? 'null' : `a ${typeof tx}`}`
  const { query, totalCount, idleCount, isTransaction, execute } = tx as Record<string, unknown>
  if (typeof totalCount === 'number' && typeof idleCount === 'number')
    return 'is a pool, where each query may use another connection; take a client from it (`pool.connect()`) and run `begin` on it'
  if (typeof isTransaction === 'boolean') return 'is a Kysely object; pass fromKysely(trx) from holdfast/kysely'
  if (typeof query === 'function') return undefined
  if (typeof execute === 'function') return 'has no `query`; for Drizzle, pass fromDrizzle(tx) from holdfast/drizzle'
  return 'has no `query` function'
}

/** Whether a `pg` client reports an open transaction. If it doesn't, a `begin` may still be on its way. */
function isOpen(tx: Queryable): boolean {
  const { getTransactionStatus: ask } = tx as { getTransactionStatus?: () => unknown }
  return typeof ask === 'function' && ['T', 'E'].includes(String(ask.call(tx)))
}

/** Whether the server reports that no transaction is open. Each library wraps that error in its own way. */
function saysNoTransaction(error: unknown): boolean {
  const { code, meta, cause, message } = (error ?? {}) as Record<string, unknown>
  return (
    [code, (meta as { code?: unknown })?.code, (cause as { code?: unknown })?.code].includes('25P01') ||
    /25P01|only be used in transaction blocks/.test(String(message))
  )
}

/** The error for a `tx` that is not an open transaction. */
export function refused(problem: string): HoldfastError {
  return new HoldfastError(
    'option_invalid',
    `The option tx must be an open transaction, but it ${problem}. It takes a pg client after \`begin\`, fromKysely(trx) or fromDrizzle(tx).`,
  )
}
