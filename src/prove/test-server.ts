import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EmbeddedPostgres, removeEmbedded, startEmbedded } from '../embedded/embedded.ts'
import { HoldfastError } from '../errors/errors.ts'
import { runOnce } from '../postgres/run-once.ts'
import { DatabasePool } from './database-pool.ts'
import { type Target, targetOf } from './target.ts'
import { hasJobs, hasSchema } from './test-server.sql.ts'

/** A Postgres server that a proof runs on. */
export interface TestServer {
  readonly databases: DatabasePool
  /** Its current address; a restart may move it. */
  target(): Target
  /** Restarts the server, or comes as close to it as possible for one database. */
  restart(database: string): Promise<void>
  /** What a restart is here, for the report. */
  readonly restartIs: string
  stop(): Promise<void>
}

/** Starts an embedded Postgres in a temporary folder. */
export async function embeddedServer(): Promise<TestServer> {
  const server = new EmbeddedServer(await mkdtemp(join(tmpdir(), 'holdfast-prove-')))
  try {
    await server.start()
    return server
  } catch (error) {
    await server.stop()
    throw error
  }
}

class EmbeddedServer implements TestServer {
  readonly databases = new DatabasePool(() => this.#url())
  readonly restartIs = 'kill -9 of the postmaster, then a new start on the same data'
  readonly #dir: string
  #postgres: EmbeddedPostgres | undefined
  #restarting: Promise<void> | undefined

  constructor(dir: string) {
    this.#dir = dir
  }

  async start(): Promise<void> {
    await this.#startPostgres()
    await this.databases.prepare()
  }

  target(): Target {
    return targetOf(this.#url())
  }

  restart(): Promise<void> {
    this.#restarting = this.#killAndStart()
    return this.#restarting
  }

  async stop(): Promise<void> {
    await this.#restarting?.catch(() => {}) // or the server that it starts would outlive us
    await this.#postgres?.stop()
    await removeEmbedded(this.#dir).catch(() => {})
    await rm(this.#dir, { recursive: true, force: true })
  }

  #url(): string {
    return (this.#postgres as EmbeddedPostgres).url
  }

  async #startPostgres(): Promise<void> {
    const settings = { max_connections: '300', shared_buffers: '64MB' }
    this.#postgres = await startEmbedded({ dir: this.#dir, settings })
  }

  async #killAndStart(): Promise<void> {
    const { postgres } = JSON.parse(await readFile(join(this.#postgres?.dir ?? this.#dir, 'embedded.json'), 'utf8'))
    process.kill(postgres, 'SIGKILL')
    // stopped right away, or its keeper would restart it, which it does only so often per minute
    await this.#postgres?.stop()
    await this.#startPostgres()
  }
}

/** Uses a server of the caller, in databases that are created for the proof and dropped after it. */
export async function externalServer(url: string, options: { isForced: boolean }): Promise<TestServer> {
  if (!options.isForced) await refuseDatabaseWithJobs(url)
  const databases = new DatabasePool(() => url)
  await databases.prepare()
  return {
    databases,
    target: () => targetOf(url),
    restart: (database) => databases.endConnections(database),
    restartIs: 'pg_terminate_backend of all connections of the cell, because the server is not ours to kill',
    stop: () => databases.dropAll(),
  }
}

async function refuseDatabaseWithJobs(url: string): Promise<void> {
  const [schema] = await runOnce(url, hasSchema, {})
  if (!schema?.has || !(await runOnce(url, hasJobs, {}))[0]?.has) return
  throw new HoldfastError(
    'prove_refused',
    'The database already holds jobs, so someone may depend on its server, and a proof loads the server and breaks ' +
      'connections. Point --url at a server that nobody else uses, or pass --force.',
  )
}
