import pg from 'pg'
import { Client, connectionOptions, drop, noteKeptOut } from './connection.ts'

/** Makes a pool of our connections. They are opened when first needed. */
export function makePool(url: string, size: number): pg.Pool {
  const pool = new pg.Pool({ ...connectionOptions(url), Client: PoolClient, max: size, idleTimeoutMillis: 10_000 })
  // an idle connection that breaks is replaced when next needed; without a listener it would end the process
  pool.on('error', () => {})
  return pool
}

/** A connection that hangs up if the server does not admit it: `pg` would leave it open, and a server waits a minute for a password. */
class PoolClient extends Client {
  constructor(options?: string | pg.ClientConfig) {
    super(options)
    // its user learns of a break from its statement; one that breaks without a listener would end the process
    this.on('error', () => {})
  }

  override connect(): Promise<pg.Client>
  override connect(done: ((error: Error) => void) | ((none: null, client: pg.Client) => void)): void
  override connect(done?: unknown): Promise<pg.Client> | undefined {
    const connected = super.connect().catch((error) => {
      noteKeptOut(error)
      drop(this)
      throw error
    })
    if (!done) return connected
    const tell = done as (error?: Error) => void
    void connected.then(() => tell(), tell)
    return undefined
  }
}
