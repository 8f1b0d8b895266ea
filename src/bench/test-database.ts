import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeEmbedded, startEmbedded } from '../embedded/embedded.ts'
import { HoldfastError } from '../errors/errors.ts'
import { runOnce } from '../postgres/run-once.ts'
import { createDatabase, dropDatabase, hasJobs, hasSchema } from './test-database.sql.ts'

/** A database that only the benchmark uses. */
export interface TestDatabase {
  readonly url: string
  stop(): Promise<void>
}

/** Starts a temporary embedded Postgres. */
export async function embeddedDatabase(): Promise<TestDatabase> {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-bench-'))
  const clear = async () => {
    await removeEmbedded(dir).catch(() => {})
    await rm(dir, { recursive: true, force: true })
  }
  try {
    const server = await startEmbedded({ dir })
    return { url: server.url, stop: () => server.stop().then(clear) }
  } catch (error) {
    await clear()
    throw error
  }
}

/** Creates a database on the caller's server, and drops it after the benchmark. */
export async function externalDatabase(url: string): Promise<TestDatabase> {
  const [schema] = await runOnce(url, hasSchema, {})
  if (schema?.has && (await runOnce(url, hasJobs, {}))[0]?.has)
    throw new HoldfastError(
      'bench_refused',
      'The database already holds jobs, so someone may depend on its server, and a benchmark uses all of its capacity. ' +
        'Point --url at a server that nobody else uses, or leave it out to measure on an embedded one.',
    )
  const name = `holdfast_bench_${randomBytes(4).toString('hex')}`
  const own = new URL(url)
  own.pathname = `/${name}`
  await runOnce(url, createDatabase, { name })
  return { url: own.href, stop: async () => void (await runOnce(url, dropDatabase, { name })) }
}
