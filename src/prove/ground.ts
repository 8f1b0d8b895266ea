import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { HoldfastError } from '../errors/errors.ts'
import { connectionOptions, describe } from '../store/connection.ts'
import { type EmbeddedPostgres, removeEmbedded, startEmbedded } from '../store/embedded/embedded.ts'
import { serverVersion } from '../store/migrate.sql.ts'
import { migrate } from '../store/migrate.ts'
import type { Statement } from '../store/sql.ts'
import { runnerIn } from '../store/store.ts'
import { type Target, targetOf } from './dial.ts'
import { copyDatabase, copyDatabaseFiles, dropDatabase, endConnections, hasJobs, hasSchema } from './ground.sql.ts'

/** A server that proofs stand on. Each cell has a database of its own there. */
export interface Ground {
  /** Where the server is at this moment; a restart may move it. */
  target(): Target
  /** The URL of a database of the server, as it is at this moment. */
  url(database: string): string
  /** Makes a database: a copy of a migrated one, or an empty one. Answers its name. */
  make(from: 'migrated' | 'empty'): Promise<string>
  drop(database: string): Promise<void>
  /** Restarts the server, or comes as near to it as it can. */
  restart(database: string): Promise<void>
  /** What a restart is here. */
  readonly restartIs: string
  stop(): Promise<void>
}

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

/** Starts an embedded Postgres in a folder that goes with it. */
export async function embeddedGround(): Promise<Ground> {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-prove-'))
  const settings = { max_connections: '300', shared_buffers: '64MB' }
  let server: EmbeddedPostgres = await startEmbedded({ dir, settings })

  async function restart(): Promise<void> {
    const { postgres } = JSON.parse(await readFile(join(server.dir, 'embedded.json'), 'utf8')) as { postgres: number }
    process.kill(postgres, 'SIGKILL')
    // asked to stop in the same breath, or its keeper would start it again, and that only so often per minute
    await server.stop()
    server = await startEmbedded({ dir, settings })
  }

  async function stop(): Promise<void> {
    await server.stop()
    await removeEmbedded(dir).catch(() => {})
    await rm(dir, { recursive: true, force: true })
  }

  return prepared({
    serverUrl: () => server.url,
    restart,
    restartIs: 'kill -9 of the postmaster, then a new start on the same data',
    stop,
  })
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
    serverUrl: () => url,
    restart: (database) => runOnce(ground.url(database), endConnections, {}).then(() => {}),
    restartIs: 'pg_terminate_backend of all connections of the cell, because the server is not ours to kill',
    stop: async () => {},
  })
  return ground
}

async function prepared(parts: {
  serverUrl: () => string
  restart: (database: string) => Promise<void>
  restartIs: string
  stop: () => Promise<void>
}): Promise<Ground> {
  const prefix = `holdfast_prove_${randomBytes(4).toString('hex')}`
  const template = `${prefix}_template`
  const standing = new Set<string>()
  let made = 0
  const url = (database: string) => {
    const changed = new URL(parts.serverUrl())
    changed.pathname = `/${database}`
    return changed.href
  }
  const [version] = await runOnce(parts.serverUrl(), serverVersion, {})
  const copy = (version?.number ?? 0) >= 150_000 ? copyDatabaseFiles : copyDatabase

  async function create(name: string, from: string): Promise<void> {
    standing.add(name)
    await runOnce(parts.serverUrl(), copy, { name, template: from })
  }

  async function drop(name: string): Promise<void> {
    await runOnce(parts.serverUrl(), dropDatabase, { name })
    standing.delete(name)
  }

  await create(template, 'template0')
  await migrate(url(template))
  return {
    target: () => targetOf(parts.serverUrl()),
    url,
    async make(from) {
      made += 1
      const name = `${prefix}_${made}`
      await create(name, from === 'migrated' ? template : 'template0')
      return name
    },
    drop,
    restart: parts.restart,
    restartIs: parts.restartIs,
    async stop() {
      for (const name of standing) await drop(name).catch(() => {})
      await parts.stop()
    },
  }
}
