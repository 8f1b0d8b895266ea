import type pg from 'pg'
import { HoldfastError } from '../errors/errors.ts'
import { answered, type Bounded, isCancelPending } from './answer.ts'
import { ClientPool } from './client-pool.ts'
import { isConnectionError, isLostName, isOvertime, isRetryable, wasIdle } from './connection.ts'
import { ContendedWrites, type Patience } from './contended.ts'
import { describe } from './error-message.ts'
import { makePool } from './pool-client.ts'
import { type Statement, textOf } from './sql.ts'

/** Runs statements: on a connection of the pool, inside one transaction, or inside a transaction that the caller owns. */
export interface Runner {
  /** `answerMs`: how long the statement may take before the server cancels it. Default and maximum: the setting `statementTimeoutMs`. */
  run<P, Row>(statement: Statement<P, Row>, params: P, answerMs?: number): Promise<Row[]>
}

/** How long the statements of a transaction may take. */
export interface TransactionBounds {
  /** How long one may wait for a lock. Default: as long as for its answer. */
  lockMs?: number
  /** How long one may take before it is cancelled. Default: the setting `statementTimeoutMs`. */
  answerMs?: number
  /** How long it may be silent between two statements. Default: a second with a lock limit, because others wait for what it has locked. */
  silentMs?: number
}

/** The database as the rooms see it. It decides everything durable. */
export interface Store extends Runner {
  /** Runs `work` in one transaction: all of it commits, or nothing does. Runs it again if the server rolled it back in favor of another one. */
  transaction<T>(work: (runner: Runner) => Promise<T>, bounds?: TransactionBounds): Promise<T>
  /** Runs a statement that changes rows which another transaction may have locked. While they are, it holds no connection, and tries again. */
  contend<P, Row>(statement: Statement<P, Row>, params: P, patience?: Patience): Promise<Row[]>
  /** The same for a transaction. `name` says what it does, in the error of one that waited too long. */
  contendIn<T>(name: string, work: (runner: Runner) => Promise<T>, patience?: Patience): Promise<T>
  close(): Promise<void>
}

/** Anything that can run a query with numbered parameters: a `pg` client, or an adapter around another library's transaction. */
export interface Queryable {
  /** Runs one statement with its parameters and returns its rows. */
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>
}

/** How to reach the database. */
export interface Access {
  url: string
  poolSize: number
  /** Whether the URL points to a transaction pooler, which keeps neither prepared names nor session state. */
  isPooled: boolean
  statementTimeoutMs: number
  /** Called when a prepared name turns out to belong to another backend: the URL points to a pooler after all. */
  onPooler?: () => void
}

/** Opens the store. Connections are opened when first needed. */
export function openStore(access: Access): Store {
  return new PostgresStore(access)
}

class PostgresStore implements Store {
  readonly #access: Access
  readonly #pool: pg.Pool
  readonly #clients: ClientPool
  readonly #contended: ContendedWrites
  /** Transactions are apart: some write a hundred thousand rows, and statements must not queue behind them. */
  readonly #contendedWork: ContendedWrites
  readonly #underWay = new Set<Promise<unknown>>()
  #isNamed: boolean
  #closing: Promise<void> | undefined

  constructor(access: Access) {
    this.#access = access
    this.#pool = makePool(access.url, access.poolSize)
    this.#clients = new ClientPool(this.#pool, access.poolSize)
    this.#contended = new ContendedWrites(this, access.poolSize)
    this.#contendedWork = new ContendedWrites(this, access.poolSize)
    this.#isNamed = !access.isPooled
  }

  run<P, Row>(statement: Statement<P, Row>, params: P, answerMs?: number): Promise<Row[]> {
    return this.#carry(() =>
      onClient(this.#clients, (client) =>
        answered(client, runOn(client, statement, params, this.#isNamed), this.#bounds(answerMs)),
      ),
    )
  }

  transaction<T>(work: (runner: Runner) => Promise<T>, bounds: TransactionBounds = {}): Promise<T> {
    const { answerMs, ...limits } = bounds
    return this.#carry(() =>
      inTransaction(this.#clients, work, { isNamed: this.#isNamed, limits, bounds: this.#bounds(answerMs) }),
    )
  }

  contend: Store['contend'] = (statement, params, patience) => this.#contended.run(statement, params, patience)

  contendIn: Store['contendIn'] = (name, work, patience) => this.#contendedWork.transaction(name, work, patience)

  close(): Promise<void> {
    this.#closing ??= this.#drain()
    return this.#closing
  }

  async #drain(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
    await this.#pool.end()
  }

  #bounds(answerMs = this.#access.statementTimeoutMs): Bounded {
    const { statementTimeoutMs } = this.#access
    return { answerMs: Math.min(answerMs, statementTimeoutMs), dropMs: statementTimeoutMs }
  }

  /** A closed store is not taken for a broken connection, and work that began before the close is finished first. */
  #carry<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing) return Promise.reject(new HoldfastError('not_running', 'This Holdfast instance is closed.'))
    const carried = retried(() => this.#withoutNames(work)).catch((error) =>
      Promise.reject(describe(error, this.#access.url)),
    )
    this.#underWay.add(carried)
    const forget = () => this.#underWay.delete(carried)
    carried.then(forget, forget)
    return carried
  }

  /** A statement whose name the backend doesn't know, or knows for another, was refused before it did anything: it can be run again without names. */
  async #withoutNames<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      if (!isLostName(error)) throw error
      if (this.#isNamed) this.#access.onPooler?.()
      this.#isNamed = false
      return run()
    }
  }
}

const mostTries = 5

/**
 * Runs a statement again that the server rolled back in favor of another one, after a deadlock for example. Or that it never read, because
 * it was about to end the connection.
 */
async function retried<T>(run: () => Promise<T>, tries = 1): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (tries === mostTries || !(isRetryable(error) || wasIdle(error))) throw error
    return retried(run, tries + 1)
  }
}

/** Runs `work` in a transaction of its own, or in the caller's transaction if the runner is inside one. */
export function atomically<T>(
  runner: Runner | Store,
  work: (runner: Runner) => Promise<T>,
  bounds: TransactionBounds,
): Promise<T> {
  return 'transaction' in runner ? runner.transaction(work, bounds) : work(runner)
}

/** The same runner, which calls `tell` before and after each statement: a loop that waits for the database statement by statement is alive. */
export function tellingRunner<R extends Runner | Store>(runner: R, tell: () => void): R {
  const run: Runner['run'] = (statement, params, answerMs) => {
    tell()
    return runner.run(statement, params, answerMs).finally(tell)
  }
  if (!('transaction' in runner)) return { run } as R
  const transaction: Store['transaction'] = (work, bounds) =>
    runner.transaction((inner) => work(tellingRunner(inner, tell)), bounds)
  const contend: Store['contend'] = (statement, params, patience) => {
    tell()
    return runner.contend(statement, params, patience).finally(tell)
  }
  const contendIn: Store['contendIn'] = (name, work, patience) =>
    runner.contendIn(name, (inner) => work(tellingRunner(inner, tell)), patience)
  return { run, transaction, contend, contendIn, close: () => runner.close() } as Store as R
}

/** A runner inside a transaction that the caller owns, begins and ends. */
export function runnerIn(tx: Queryable): Runner {
  return { run: (statement, params) => runOn(tx, statement, params, false) }
}

interface NamedQueryable {
  query(query: { name?: string; text: string; values: unknown[] }): Promise<{ rows: unknown[] }>
}

async function runOn<P, Row>(
  on: Queryable | NamedQueryable | pg.ClientBase,
  statement: Statement<P, Row>,
  params: P,
  isNamed: boolean,
): Promise<Row[]> {
  const piece = statement.build(params)
  const text = `/* ${statement.name} */ ${textOf(piece)}`
  if (!isNamed) return (await (on as Queryable).query(text, [...piece.values])).rows as Row[]
  return (await (on as NamedQueryable).query({ name: statement.name, text, values: [...piece.values] })).rows as Row[]
}

/** Lends a connection. Whatever the statement comes to, it is kept, unless it broke or a cancel may still be on its way to it. */
async function onClient<T>(clients: ClientPool, use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await clients.take()
  let isUnfit = false
  try {
    return await use(client)
  } catch (error) {
    isUnfit = isConnectionError(error) || isOvertime(error)
    throw error
  } finally {
    clients.giveBack(client, isUnfit || isSpoilt(client))
  }
}

/** Whether a connection can't be lent again: a transaction may be open on it, or a cancel was sent that has hit nothing yet. */
function isSpoilt(client: pg.PoolClient): boolean {
  return isCancelPending(client) || client.getTransactionStatus() !== 'I'
}

interface TransactionOptions {
  isNamed: boolean
  limits: Pick<TransactionBounds, 'lockMs' | 'silentMs'>
  bounds: Bounded
}

function inTransaction<T>(
  clients: ClientPool,
  work: (runner: Runner) => Promise<T>,
  { isNamed, limits, bounds }: TransactionOptions,
): Promise<T> {
  return onClient(clients, async (client) => {
    const say = (text: string) => answered(client, client.query(text), { ...bounds, answerMs: bounds.dropMs })
    try {
      await say(beginning(limits, bounds.dropMs))
      const result = await work({
        run: (statement, params, answerMs = bounds.answerMs) =>
          answered(client, runOn(client, statement, params, isNamed), { ...bounds, answerMs }),
      })
      await say('commit')
      return result
    } catch (error) {
      // the rollback waits for statements of `work` that are still running; a connection that it does not reach is dropped
      if (!isConnectionError(error)) await say('rollback').catch(() => {})
      throw error
    }
  })
}

// next to no time passes between two of our statements, unless the process is frozen, blocked or cut off
const usualSilentMs = 1_000

/**
 * Begins a transaction that the server ends if no statement arrives: its locks must not last for as long as a dead process looks
 * connected. One with a lock timeout locks rows that others wait for, and so gets less time.
 */
function beginning({ lockMs, silentMs }: TransactionOptions['limits'], dropMs: number): string {
  const idleMs = Math.min(silentMs ?? (lockMs === undefined ? dropMs : usualSilentMs), dropMs)
  const limits = { idle_in_transaction_session_timeout: idleMs, ...(lockMs !== undefined && { lock_timeout: lockMs }) }
  return ['begin', ...Object.entries(limits).map(([name, ms]) => `set local ${name} = ${Math.ceil(ms)}`)].join('; ')
}
