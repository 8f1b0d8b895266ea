/**
 * Finds out whether a URL leads through a pooler that gives each transaction another backend. Through one, a session lock stays behind on a
 * backend that others use, prepared names are known on one backend and missing on the next, and LISTEN hears nothing.
 */
import pg from 'pg'
import { HoldfastError } from '../errors/errors.ts'
import { connectionOptions } from './connection.ts'
import { describe } from './describe.ts'
import { nameBackend } from './pooler.sql.ts'
import { runnerIn } from './store.ts'

const rounds = 3

/** What to do about a pooler, as a sentence. */
export const poolerAdvice =
  'Set HOLDFAST_POOLED=true (pooled: true) to say so, or use the address of the server itself, or a pooler in session mode.'

/** Whether a URL leads through a transaction pooler. Throws if it is one that Holdfast can't work through at all. */
export async function isTransactionPooler(url: string): Promise<boolean> {
  const clients: pg.Client[] = []
  const open = async () => {
    const client = new pg.Client(connectionOptions(url))
    client.on('error', () => {})
    clients.push(client)
    await client.connect()
    return client
  }
  try {
    const first = await open()
    // a server names its own backend at the start; a pooler makes a name up, for it has no backend yet
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

/** Whether a connection lost its backend to another one, which keeps what it gets for the length of a transaction. */
async function isShared(first: pg.Client, second: pg.Client, url: string): Promise<boolean> {
  const before = await backendOf(first)
  await second.query('begin').catch((error) => refuseStatements(error, url))
  const taken = await backendOf(second)
  // before the first asks again: a pooler with one backend would let it wait for the second
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
    'The database URL leads through a pooler in statement mode, where no transaction is possible. Use its transaction or session mode, or the server itself.',
    { cause: error },
  )
}
