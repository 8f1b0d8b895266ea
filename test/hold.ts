import pg from 'pg'
import { onTestFinished } from 'vitest'

/** Locks a table against writes until released. If a failed test does not release it, the server does. */
export async function holdTable(pool: pg.Pool, table: string): Promise<() => Promise<void>> {
  // its own connection: the pool could not end while a failed test still has one of its connections
  const client = new pg.Client(pool.options)
  const ignore = () => {}
  client.on('error', ignore)
  await client.connect()
  await client.query(`set idle_in_transaction_session_timeout = '15s'`)
  await client.query(`begin; lock table holdfast.${table} in exclusive mode`)
  return async () => {
    await client.query('commit').catch(ignore)
    await client.end()
  }
}

/** Opens a transaction, as another program would. If a failed test does not end it, the server does. */
export async function transaction(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  onTestFinished(() => client.end().catch(() => {}))
  await client.query(`set idle_in_transaction_session_timeout = '60s'`)
  await client.query('begin')
  return client
}

/** Whether a statement of that name waits for a lock. */
export async function isHeldBack(pool: pg.Pool, statement: string): Promise<boolean> {
  const { rows } = await pool.query(
    `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and query like $1`,
    [`%${statement}%`],
  )
  return rows.length > 0
}

/** Runs a statement in a transaction of another program, and keeps its locks until released. If a failed test does not release them, the server does. */
export async function strangerHolds(pool: pg.Pool, text: string, values: unknown[] = []): Promise<() => Promise<void>> {
  const client = new pg.Client(pool.options)
  client.on('error', () => {})
  await client.connect()
  await client.query(`set idle_in_transaction_session_timeout = '120s'`)
  await client.query('begin')
  await client.query(text, values)
  return async () => {
    await client.query('commit').catch(() => {})
    await client.end()
  }
}
