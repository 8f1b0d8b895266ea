import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HoldfastError } from '../errors/errors.ts'
import { removeEmbedded, startEmbedded } from '../store/embedded/embedded.ts'
import { runOnce } from '../store/run-once.ts'
import { createDatabase, dropDatabase, hasJobs, hasSchema } from './ground.sql.ts'

/** A database that nothing but the benchmark uses. */
export interface Ground {
  readonly url: string
  stop(): Promise<void>
}

/** A Postgres of our own, gone with all that is on it. */
export async function embeddedGround(): Promise<Ground> {
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

/** A database made for the benchmark on the caller's server, and dropped after it. */
export async function givenGround(url: string): Promise<Ground> {
  const [schema] = await runOnce(url, hasSchema, {})
  if (schema?.has && (await runOnce(url, hasJobs, {}))[0]?.has)
    throw new HoldfastError(
      'bench_refused',
      'The database already holds jobs, so somebody may depend on its server, and a benchmark takes all that a server has. ' +
        'Point --url at a server that nobody else uses, or leave it out to measure on an embedded one.',
    )
  const name = `holdfast_bench_${randomBytes(4).toString('hex')}`
  const own = new URL(url)
  own.pathname = `/${name}`
  await runOnce(url, createDatabase, { name })
  return { url: own.href, stop: async () => void (await runOnce(url, dropDatabase, { name })) }
}
