import { randomBytes } from 'node:crypto'
import { type ConnectOptions, connect, type Holdfast } from 'holdfast'
import pg from 'pg'
import { test as base, inject } from 'vitest'
import { openStore, type Store } from '#holdfast/postgres/store'
import { type Given, makeGiven } from './given.ts'

export { expect } from 'vitest'
export { gate, until } from './until.ts'

/** What a test can use. Each test has its own database, so it never sees the rows of another. */
export interface Fixtures {
  /** The test's own database, migrated. */
  url: string
  /** Plain connections, as a user's program has them. */
  pool: pg.Pool
  /** Runs a plain query and returns its rows. */
  query: <Row = Record<string, unknown>>(text: string, values?: unknown[]) => Promise<Row[]>
  store: Store
  /** Connects to the test's database with quick settings and without logs. Closed at the end of the test. */
  open: (options?: ConnectOptions) => Promise<Holdfast>
  /** A connected Holdfast without a worker. */
  hf: Holdfast
  /** Situations, created with the product's own statements. */
  given: Given
}

/** Settings under which nothing takes long. */
export const quick = {
  logLevel: 'silent',
  backoffBaseMs: 10,
  pollMs: 200,
  drainMs: 5_000,
  readerBeatMs: 50,
  httpDrainMs: 0,
  httpRefusalMs: 0,
} as const

/** A test with its own database. */
export const test = base.extend<Fixtures>({
  url: async ({ task: _task }, use) => {
    const database = await newDatabase()
    await use(database.url)
    await database.drop()
  },
  pool: async ({ url }, use) => {
    const pool = new pg.Pool({ connectionString: url, max: 4 })
    pool.on('error', () => {})
    const lent = new Set<pg.PoolClient>()
    pool.on('acquire', (client) => lent.add(client))
    pool.on('release', (_error, client) => lent.delete(client))
    await use(pool)
    // a failed test may not have released its connections, and the pool would wait for them forever
    for (const client of lent) client.release(true)
    await pool.end()
  },
  query: async ({ pool }, use) => use(async (text, values = []) => (await pool.query(text, values)).rows),
  store: async ({ url }, use) => {
    const store = openStore({ url, poolSize: 20, isPooled: false, statementTimeoutMs: 15_000 })
    await use(store)
    await store.close()
  },
  open: async ({ url }, use) => {
    const opened: Holdfast[] = []
    await use(async (options = {}) => {
      const hf = await connect({ url, ...quick, ...options })
      opened.push(hf)
      return hf
    })
    await Promise.all(opened.map((hf) => hf.close()))
  },
  hf: async ({ open }, use) => use(await open()),
  given: async ({ store, query }, use) => use(makeGiven(store, query)),
})

/** Creates a database on the shared server: a copy of the migrated one, or an empty one. */
export async function newDatabase(
  from: 'migrated' | 'empty' = 'migrated',
): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `holdfast_${randomBytes(8).toString('hex')}`
  await onServer(`create database ${name} template ${from === 'empty' ? 'template0' : inject('template')}`)
  const url = new URL(inject('server'))
  url.pathname = `/${name}`
  return { url: url.href, drop: () => onServer(`drop database ${name} with (force)`) }
}

async function onServer(text: string): Promise<void> {
  const client = new pg.Client(inject('server'))
  await client.connect()
  // copying files is far quicker than logging them, but only Postgres 15 and later offer the choice
  const version = Number((await client.query('show server_version_num')).rows[0].server_version_num)
  await client.query(text.startsWith('create') && version >= 150_000 ? `${text} strategy file_copy` : text)
  await client.end()
}
