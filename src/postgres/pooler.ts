/**
 * Detects whether a URL points to a transaction pooler, where each transaction may get another backend. A session lock then stays behind on a
 * backend that others use, prepared names exist on one backend but not on the next, and LISTEN receives nothing.
 */
import type pg from 'pg'
import { HoldfastError } from '../errors/errors.ts'
import { Client, connectionOptions, connectTimeoutMs } from './connection.ts'
import { describe } from './error-message.ts'
import { nameBackend } from './pooler.sql.ts'
import { runnerIn } from './store.ts'

const rounds = 3

/** What to do about a pooler. */
export const poolerAdvice =
  'Set HOLDFAST_POOLED=true (pooled: true) to confirm this, or connect directly to the server or to a pooler in session mode.'

/** Whether a URL points to a transaction pooler. Throws if it is a pooler that Holdfast can't work with at all. */
export async function isTransactionPooler(url: string): Promise<boolean> {
  const clients: pg.Client[] = []
  const open = async () => {
    // a server that accepts connections and never answers must not hang the start
    const client = new Client({ ...connectionOptions(url), query_timeout: connectTimeoutMs(url) })
    client.on('error', () => {})
    clients.push(client)
    await client.connect()
    return client
  }
  try {
    const first = await open()
    // a server announces its own backend when it connects; a pooler makes up a number, because it has no backend yet
    if ((first as unknown as { processID: number }).processID === (await backendOf(first))) return false
    const second = await open()
    for (let round = 0; round < rounds; round++) if (await isShared(first, second, url)) return true
    return false
  } catch (error) {
    throw describe(error, url)
  } finally {
    await Promise.all(clients.map((client) => client.end().catch(() => {})))
  }
}

/** Whether a connection lost its backend to another connection, which has opened a transaction. */
async function isShared(first: pg.Client, second: pg.Client, url: string): Promise<boolean> {
  const before = await backendOf(first)
  await second.query('begin').catch((error) => refuseStatements(error, url))
  const taken = await backendOf(second)
  // checked before the first connection queries again: with a single backend, it would wait for the second one
  const isTaken = taken === before
  const after = isTaken ? before : await backendOf(first)
  await second.query('commit')
  return isTaken || after !== before
}

async function backendOf(client: pg.Client): Promise<number> {
  const [now] = await runnerIn(client).run(nameBackend, {})
  return (now as { backend: number }).backend
}

function refuseStatements(error: unknown, url: string): never {
  if (!/statement pooling/i.test(String((error as Error)?.message))) throw describe(error, url)
  throw new HoldfastError(
    'database_unsupported',
    'The database URL points to a pooler in statement mode, which does not support transactions. Use transaction or session mode, or connect directly to the server.',
    { cause: error },
  )
}
