import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HoldfastError } from '../errors/errors.ts'
import { type EmbeddedPostgres, removeEmbedded, startEmbedded } from '../store/embedded/embedded.ts'
import { migrate } from '../store/migrate.ts'
import { runOnce } from '../store/run-once.ts'
import { type Target, targetOf } from './dial.ts'
import {
  copyDatabase,
  dropDatabase,
  emptyTables,
  endConnections,
  hasJobs,
  hasSchema,
  tablesToEmpty,
} from './ground.sql.ts'

/** A server that proofs stand on. Each cell has a database of its own there. */
export interface Ground {
  /** Where the server is at this moment; a restart may move it. */
  target(): Target
  /** The URL of a database of the server, as it is at this moment. */
  url(database: string): string
  /** Gives a database without any rows, migrated or without a schema. Answers its name. */
  lend(as: 'migrated' | 'blank'): Promise<string>
  /** Takes a database back. */
  takeBack(database: string): Promise<void>
  /** Restarts the server, or comes as near to it as it can. */
  restart(database: string): Promise<void>
  /** What a restart is here. */
  readonly restartIs: string
  stop(): Promise<void>
}

/** Starts an embedded Postgres in a folder that goes with it. */
export async function embeddedGround(): Promise<Ground> {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-prove-'))
  const settings = { max_connections: '300', shared_buffers: '64MB' }
  let server: EmbeddedPostgres | undefined
  let restarting: Promise<void> | undefined

  async function killAndStart(): Promise<void> {
    const { postgres } = JSON.parse(await readFile(join(server?.dir ?? dir, 'embedded.json'), 'utf8'))
    process.kill(postgres, 'SIGKILL')
    // asked to stop in the same breath, or its keeper would start it again, and that only so often per minute
    await server?.stop()
    server = await startEmbedded({ dir, settings })
  }

  async function stop(): Promise<void> {
    await restarting?.catch(() => {}) // or what it starts would outlive us
    await server?.stop()
    await removeEmbedded(dir).catch(() => {})
    await rm(dir, { recursive: true, force: true })
  }

  try {
    server = await startEmbedded({ dir, settings })
    return await prepared({
      isOwn: true,
      serverUrl: () => (server as EmbeddedPostgres).url,
      restart: () => {
        restarting = killAndStart()
        return restarting
      },
      restartIs: 'kill -9 of the postmaster, then a new start on the same data',
      stop,
    })
  } catch (error) {
    await stop()
    throw error
  }
}

/** Uses a server of the caller's, in databases made for the proof and dropped after it. */
export async function givenGround(url: string, options: { isForced: boolean }): Promise<Ground> {
  const [schema] = await runOnce(url, hasSchema, {})
  if (schema?.has && !options.isForced && (await runOnce(url, hasJobs, {}))[0]?.has)
    throw new HoldfastError(
      'prove_refused',
      'The database already holds a Holdfast schema with jobs, so somebody may depend on its server, and a proof loads it and ' +
        'breaks connections. Point --url at a server that nobody else uses, or say --force.',
    )
  const ground = await prepared({
    isOwn: false,
    serverUrl: () => url,
    restart: (database) => runOnce(ground.url(database), endConnections, {}).then(() => {}),
    restartIs: 'pg_terminate_backend of all connections of the cell, because the server is not ours to kill',
    stop: async () => {},
  })
  return ground
}

async function prepared(parts: {
  isOwn: boolean
  serverUrl: () => string
  restart: (database: string) => Promise<void>
  restartIs: string
  stop: () => Promise<void>
}): Promise<Ground> {
  const prefix = `holdfast_prove_${randomBytes(4).toString('hex')}`
  const template = `${prefix}_template`
  const standing = new Set<string>()
  const lent = new Map<string, 'migrated' | 'blank'>()
  const idle: string[] = []
  let made = 0
  const url = (database: string) => {
    const changed = new URL(parts.serverUrl())
    changed.pathname = `/${database}`
    return changed.href
  }

  async function create(name: string, from: string): Promise<void> {
    standing.add(name)
    await runOnce(parts.serverUrl(), copyDatabase, { name, template: from })
  }

  async function drop(name: string): Promise<void> {
    await runOnce(parts.serverUrl(), dropDatabase, { name })
    standing.delete(name)
  }

  async function lend(as: 'migrated' | 'blank'): Promise<string> {
    const used = as === 'migrated' ? idle.pop() : undefined
    made += used ? 0 : 1
    const name = used ?? `${prefix}_${made}`
    if (!used) await create(name, as === 'migrated' ? template : 'template0')
    lent.set(name, as)
    return name
  }

  // emptied rather than dropped: to drop a database the server writes out all it has, which takes longer than a cell
  async function takeBack(name: string): Promise<void> {
    if (lent.get(name) === 'blank') return drop(name)
    await runOnce(url(name), endConnections, {})
    const tables = await runOnce(url(name), tablesToEmpty, {})
    await runOnce(url(name), emptyTables, { names: tables.map((table) => table.name) })
    idle.push(name)
  }

  await create(template, 'template0')
  await migrate(url(template))
  return {
    target: () => targetOf(parts.serverUrl()),
    url,
    lend,
    takeBack,
    restart: parts.restart,
    restartIs: parts.restartIs,
    async stop() {
      // a server of our own goes with all that is on it
      if (!parts.isOwn) for (const name of standing) await drop(name).catch(() => {})
      await parts.stop()
    },
  }
}
