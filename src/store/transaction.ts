import { HoldfastError } from '../errors/errors.ts'
import { type Queryable, type Runner, runnerIn } from './store.ts'
import { mustBeInTransaction } from './transaction.sql.ts'

/** Whatever an adapter made of a transaction of its library, so that nobody has to ask the server. */
const adapted = new WeakSet<object>()

/** Marks what stands for an open transaction, by the word of the library that opened it. */
export function inTransaction(tx: Queryable): Queryable {
  adapted.add(tx)
  return tx
}

/**
 * A runner inside a transaction that the caller owns. Throws if there is none: what was meant to commit with the caller's own rows
 * would be committed at once, and nobody would notice before something is rolled back.
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
    return 'is a pool, where each query may go to another connection; take a client of it (`pool.connect()`) and run `begin` on it'
  if (typeof isTransaction === 'boolean') return 'is an object of Kysely; write fromKysely(trx), from holdfast/kysely'
  if (typeof query === 'function') return undefined
  if (typeof execute === 'function') return 'has no `query`; for Drizzle, write fromDrizzle(tx), from holdfast/drizzle'
  return 'has no function `query`'
}

/** Whether a client of `pg` knows of an open transaction. If it knows of none, a `begin` may still be on its way. */
function isOpen(tx: Queryable): boolean {
  const { getTransactionStatus: ask } = tx as { getTransactionStatus?: () => unknown }
  return typeof ask === 'function' && ['T', 'E'].includes(String(ask.call(tx)))
}

/** Whether the server says that no transaction is open. Libraries wrap its code, each in its own way. */
function saysNoTransaction(error: unknown): boolean {
  const { code, meta, cause, message } = (error ?? {}) as Record<string, unknown>
  return (
    [code, (meta as { code?: unknown })?.code, (cause as { code?: unknown })?.code].includes('25P01') ||
    /25P01|only be used in transaction blocks/.test(String(message))
  )
}

/** That this can't be the transaction of a call. */
export function refused(problem: string): HoldfastError {
  return new HoldfastError(
    'option_invalid',
    `The option tx must be an open transaction, but it ${problem}. It takes a pg client after \`begin\`, fromKysely(trx) or fromDrizzle(tx).`,
  )
}
