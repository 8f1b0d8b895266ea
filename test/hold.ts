import pg from 'pg'

/** Keeps everyone from writing to a table until released. The server lets go by itself if a failed test forgets. */
export async function holdTable(pool: pg.Pool, table: string): Promise<() => Promise<void>> {
  // a connection of its own: one that a failed test forgets to give back would hold up the end of the pool
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

/** Whether a statement of that name waits for a table that somebody holds. */
export async function isHeldBack(pool: pg.Pool, statement: string): Promise<boolean> {
  const { rows } = await pool.query(
    `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and query like $1`,
    [`%${statement}%`],
  )
  return rows.length > 0
}

/** A stranger's open transaction that holds what it selects; the server ends it if a failed test forgets. */
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
