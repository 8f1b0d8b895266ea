import pg from 'pg'
import { connectionOptions, isConnectionError } from '../postgres/connection.ts'
import type { Statement } from '../postgres/sql.ts'
import { runnerIn } from '../postgres/store.ts'
import { cellJobs, type JobRow, lockBarriers, lockJobs } from './cell-database.sql.ts'
import { eventually } from './deadline.ts'

/** Runs a statement until the database answers. */
export type Ask = <P, Row>(statement: Statement<P, Row>, params: P) => Promise<Row[]>

const answerMs = 30_000

/** The database of a cell, on direct connections that no fault breaks. */
export class CellDatabase {
  readonly #url: () => string
  #pool: { url: string; connections: pg.Pool } | undefined

  /** The URL is asked for each time, because a restarted server may have moved. */
  constructor(url: () => string) {
    this.#url = url
  }

  readonly ask: Ask = (statement, params) =>
    eventually(
      async () => {
        try {
          return await runnerIn(this.#connections()).run(statement, params)
        } catch (error) {
          if (isConnectionError(error)) return undefined // the server is being restarted
          throw error
        }
      },
      { ms: answerMs, what: `the database had answered ${statement.name}` },
    )

  jobs(): Promise<JobRow[]> {
    return this.ask(cellJobs, {})
  }

  /** Locks all live jobs and barriers in a transaction of another program. Returns how to release them. */
  async lockRows(): Promise<() => Promise<void>> {
    const client = new pg.Client(connectionOptions(this.#url()))
    client.on('error', () => {})
    await client.connect()
    await client.query('begin')
    const runner = runnerIn(client)
    await runner.run(lockJobs, {})
    await runner.run(lockBarriers, {})
    return () => client.end()
  }

  async close(): Promise<void> {
    await this.#pool?.connections.end()
  }

  #connections(): pg.Pool {
    const url = this.#url()
    if (this.#pool?.url === url) return this.#pool.connections
    this.#pool?.connections.end().catch(() => {})
    const connections = new pg.Pool({ ...connectionOptions(url), max: 2, query_timeout: 10_000 })
    connections.on('error', () => {}) // a broken connection is replaced when one is needed
    this.#pool = { url, connections }
    return connections
  }
}
