import pg from 'pg'
import { connectionOptions, describe } from './connection.ts'
import type { Statement } from './sql.ts'
import { runnerIn } from './store.ts'

/** Runs one statement on a connection of its own. */
export async function runOnce<P, Row>(url: string, statement: Statement<P, Row>, params: P): Promise<Row[]> {
  const client = new pg.Client(connectionOptions(url))
  client.on('error', () => {})
  try {
    await client.connect()
    return await runnerIn(client).run(statement, params)
  } catch (error) {
    throw describe(error, url)
  } finally {
    await client.end().catch(() => {})
  }
}
