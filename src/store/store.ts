import pg from 'pg'
import { HoldfastError } from '../errors/errors.ts'
import { connectionOptions, describe, isRetryable } from './connection.ts'
import { type Statement, textOf } from './sql.ts'

/** Runs statements: on a connection of the pool, inside one transaction, or inside a transaction that the caller owns. */
export interface Runner {
  run<P, Row>(statement: Statement<P, Row>, params: P): Promise<Row[]>
}

/** The database as the rooms see it. It decides everything durable. */
export interface Store extends Runner {
  /** Runs `work` in one transaction: all of it commits, or nothing does. Runs it again if the server undid it to let another one through. */
  transaction<T>(work: (runner: Runner) => Promise<T>): Promise<T>
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
}

/** Opens the store. Connections are made when first needed. */
export function openStore(access: Access): Store {
  const pool = new pg.Pool({
    ...connectionOptions(access.url),
    max: access.poolSize,
    query_timeout: access.statementTimeoutMs,
    idleTimeoutMillis: 30_000,
  })
  // an idle connection that breaks is replaced when next needed; without a listener it would end the process
  pool.on('error', () => {})
  const isNamed = !access.isPooled
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

  async function close(): Promise<void> {
    while (underWay.size > 0) await Promise.allSettled(underWay)
    await pool.end()
  }

  return {
    run: (statement, params) => carry(() => again(() => runOn(pool, statement, params, isNamed))),
    transaction: (work) => carry(() => again(() => inTransaction(pool, work, isNamed))),
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

async function inTransaction<T>(pool: pg.Pool, work: (runner: Runner) => Promise<T>, isNamed: boolean): Promise<T> {
  const client = await pool.connect()
  // while it is ours the pool does not listen, and a connection that breaks unheard would end the process
  const unheard = () => {}
  client.on('error', unheard)
  try {
    await client.query('begin')
    const result = await work({ run: (statement, params) => runOn(client, statement, params, isNamed) })
    await client.query('commit')
    client.off('error', unheard)
    client.release()
    return result
  } catch (error) {
    // the connection's state is unknown now: dropping it rolls back whatever is open, which a `rollback` might not reach
    client.release(true)
    throw error
  }
}
