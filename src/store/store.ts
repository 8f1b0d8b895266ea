import pg from 'pg'
import { HoldfastError } from '../errors/errors.ts'
import { answered, type Bounded, isCancelPending } from './answer.ts'
import { connectionOptions, drop, isConnectionError, isLostName, isRetryable } from './connection.ts'
import { describe } from './describe.ts'
import { type Lender, makeLender } from './lend.ts'
import { type Statement, textOf } from './sql.ts'

/** Runs statements: on a connection of the pool, inside one transaction, or inside a transaction that the caller owns. */
export interface Runner {
  /** `answerMs`: how long the statement may take before it is cancelled in the server. At most, and by default, the setting `statementTimeoutMs`. */
  run<P, Row>(statement: Statement<P, Row>, params: P, answerMs?: number): Promise<Row[]>
}

/** How long the statements of a transaction may take. */
export interface TransactionBounds {
  /** How long one may wait for a lock. Default: as long as for its answer. */
  lockMs?: number
  /** How long one may take before it is cancelled. Default: the setting `statementTimeoutMs`. */
  answerMs?: number
}

/** Runs `work` in a transaction of its own, or in the one that the caller owns, if that is all there is. */
export function within<T>(
  runner: Runner | Store,
  work: (runner: Runner) => Promise<T>,
  bounds: TransactionBounds,
): Promise<T> {
  return 'transaction' in runner ? runner.transaction(work, bounds) : work(runner)
}

/** The database as the rooms see it. It decides everything durable. */
export interface Store extends Runner {
  /** Runs `work` in one transaction: all of it commits, or nothing does. Runs it again if the server undid it to let another one through. */
  transaction<T>(work: (runner: Runner) => Promise<T>, bounds?: TransactionBounds): Promise<T>
  close(): Promise<void>
}

/** Anything that can run a query with numbered parameters: a `pg` client, or an adapter around another library's transaction. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>
}

/** What it takes to reach the database. */
export interface Access {
  url: string
  poolSize: number
  /** Whether the URL leads through a transaction pooler, where named statements and session state do not last. */
  isPooled: boolean
  statementTimeoutMs: number
  /** Called when a prepared name turns out to belong to another backend: the URL does lead through a pooler. */
  onPooler?: () => void
}

/** A connection that hangs up if it is not let in: `pg` would leave it open, and a server waits a minute for a password. */
class PoolClient extends pg.Client {
  constructor(options?: string | pg.ClientConfig) {
    super(options)
    // whoever uses it hears of a break by its statement; one that breaks while nobody listens would end the process
    this.on('error', () => {})
  }

  override connect(): Promise<pg.Client>
  override connect(done: ((error: Error) => void) | ((none: null, client: pg.Client) => void)): void
  override connect(done?: unknown): Promise<pg.Client> | undefined {
    const connected = super.connect().catch((error) => {
      drop(this)
      throw error
    })
    if (!done) return connected
    const tell = done as (error?: Error) => void
    void connected.then(() => tell(), tell)
    return undefined
  }
}

/** Opens the store. Connections are made when first needed. */
export function openStore(access: Access): Store {
  const pool = new pg.Pool({
    ...connectionOptions(access.url),
    Client: PoolClient,
    max: access.poolSize,
    idleTimeoutMillis: 10_000,
  })
  // an idle connection that breaks is replaced when next needed; without a listener it would end the process
  pool.on('error', () => {})
  const lender = makeLender(pool, access.poolSize)
  let isNamed = !access.isPooled
  const { statementTimeoutMs } = access
  const boundsOf = (answerMs: number): Bounded => ({
    answerMs: Math.min(answerMs, statementTimeoutMs),
    dropMs: statementTimeoutMs,
  })

  /** A name that is unknown to the backend, or taken there, was refused before anything was done: without names it can be run again. */
  async function withoutNames<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      if (!isLostName(error)) throw error
      if (isNamed) access.onPooler?.()
      isNamed = false
      return run()
    }
  }

  const underWay = new Set<Promise<unknown>>()
  let closing: Promise<void> | undefined

  /** Told apart from a broken connection; and what was begun before the close is answered before it. */
  function carry<T>(work: () => Promise<T>): Promise<T> {
    if (closing) return Promise.reject(new HoldfastError('not_running', 'This Holdfast was closed.'))
    const carried = work().catch((error) => Promise.reject(describe(error, access.url)))
    underWay.add(carried)
    const forget = () => underWay.delete(carried)
    carried.then(forget, forget)
    return carried
  }

  const attempt = <T>(run: () => Promise<T>) => again(() => withoutNames(run))

  async function close(): Promise<void> {
    while (underWay.size > 0) await Promise.allSettled(underWay)
    await pool.end()
  }

  return {
    run: (statement, params, answerMs = statementTimeoutMs) =>
      carry(() =>
        attempt(() =>
          onClient(lender, (client) => answered(client, runOn(client, statement, params, isNamed), boundsOf(answerMs))),
        ),
      ),
    transaction: (work, { lockMs, answerMs = statementTimeoutMs } = {}) =>
      carry(() => attempt(() => inTransaction(lender, work, { isNamed, lockMs, bounded: boundsOf(answerMs) }))),
    close: () => {
      closing ??= close()
      return closing
    },
  }
}

const mostTries = 5

/** Runs a statement again that the server has undone to let another one through: two that waited for each other, say. */
async function again<T>(run: () => Promise<T>, tries = 1): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (tries === mostTries || !isRetryable(error)) throw error
    return again(run, tries + 1)
  }
}

/** The same runner, which tells before and after each statement: whoever waits for the database statement by statement is alive. */
export function tellingRunner<R extends Runner | Store>(runner: R, tell: () => void): R {
  const run: Runner['run'] = (statement, params, answerMs) => {
    tell()
    return runner.run(statement, params, answerMs).finally(tell)
  }
  if (!('transaction' in runner)) return { ...runner, run }
  const transaction: Store['transaction'] = (work, bounds) =>
    runner.transaction((inner) => work(tellingRunner(inner, tell)), bounds)
  return { ...runner, run, transaction }
}

/** A runner inside a transaction that the caller owns, begins and ends. */
export function runnerIn(tx: Queryable): Runner {
  return { run: (statement, params) => runOn(tx, statement, params, false) }
}

interface NamedQueryable {
  query(query: { name?: string; text: string; values: unknown[] }): Promise<{ rows: unknown[] }>
}

async function runOn<P, Row>(
  on: Queryable | NamedQueryable | pg.Pool | pg.ClientBase,
  statement: Statement<P, Row>,
  params: P,
  isNamed: boolean,
): Promise<Row[]> {
  const piece = statement.build(params)
  const text = `/* ${statement.name} */ ${textOf(piece)}`
  if (!isNamed) return (await (on as Queryable).query(text, [...piece.values])).rows as Row[]
  return (await (on as NamedQueryable).query({ name: statement.name, text, values: [...piece.values] })).rows as Row[]
}

/** Lends a connection. It is kept whatever the statement comes to, unless it broke, or a cancel may still be on its way to it. */
async function onClient<T>(lender: Lender, use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await lender.take()
  let isUnfit = false
  try {
    return await use(client)
  } catch (error) {
    isUnfit = isConnectionError(error)
    throw error
  } finally {
    lender.giveBack(client, isUnfit || isSpoilt(client))
  }
}

interface Opened {
  isNamed: boolean
  lockMs: number | undefined
  bounded: Bounded
}

// between two statements of ours next to no time passes, unless the process is frozen, blocked or cut off
const silentMs = 1_000

/**
 * Begins a transaction that the server ends by itself if nothing comes: what it has locked must not stay so for as long as a process that
 * is gone looks connected. One with a limit for locks holds rows that others wait for, and so has less time.
 */
function beginning(lockMs: number | undefined, dropMs: number): string {
  const idleMs = lockMs === undefined ? dropMs : Math.min(silentMs, dropMs)
  const limits = { idle_in_transaction_session_timeout: idleMs, ...(lockMs !== undefined && { lock_timeout: lockMs }) }
  return ['begin', ...Object.entries(limits).map(([name, ms]) => `set local ${name} = ${Math.ceil(ms)}`)].join('; ')
}

function inTransaction<T>(
  lender: Lender,
  work: (runner: Runner) => Promise<T>,
  { isNamed, lockMs, bounded }: Opened,
): Promise<T> {
  return onClient(lender, async (client) => {
    const say = (text: string) => answered(client, client.query(text), { ...bounded, answerMs: bounded.dropMs })
    try {
      await say(beginning(lockMs, bounded.dropMs))
      const result = await work({
        run: (statement, params, answerMs = bounded.answerMs) =>
          answered(client, runOn(client, statement, params, isNamed), { ...bounded, answerMs }),
      })
      await say('commit')
      return result
    } catch (error) {
      // the rollback waits behind whatever of the work is still under way; a connection that it does not reach is dropped
      if (!isConnectionError(error)) await say('rollback').catch(() => {})
      throw error
    }
  })
}

/** Whether a connection can't be lent again: a transaction may be open on it, or a cancel was sent and hit nothing yet. */
function isSpoilt(client: pg.PoolClient): boolean {
  return isCancelPending(client) || client.getTransactionStatus() !== 'I'
}
