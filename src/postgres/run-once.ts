import type pg from 'pg'
import { Client, connectionOptions } from './connection.ts'
import { describe } from './error-message.ts'
import type { Statement } from './sql.ts'
import { runnerIn } from './store.ts'

/** Runs one statement on a connection of its own. */
export async function runOnce<P, Row>(url: string, statement: Statement<P, Row>, params: P): Promise<Row[]> {
  let client: pg.Client | undefined
  try {
    client = new Client(connectionOptions(url))
    client.on('error', () => {})
    await client.connect()
    return await runnerIn(client).run(statement, params)
  } catch (error) {
    throw describe(error, url)
  } finally {
    await client?.end().catch(() => {})
  }
}
