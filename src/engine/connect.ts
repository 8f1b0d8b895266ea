import type { Owner } from '../barrier/owner.ts'
import { type Config, type GivenSettings, readConfig } from '../config/config.ts'
import { settingNames } from '../config/settings.ts'
import { startEmbedded } from '../embedded/embedded.ts'
import { HoldfastError } from '../errors/errors.ts'
import { type Known, refuseUnknown } from '../errors/options.ts'
import { type AnyJob, isJob } from '../job/define.ts'
import { isTransactionPooler, poolerAdvice } from '../postgres/pooler.ts'
import { openStore, type Store } from '../postgres/store.ts'
import { checkSchema, migrate } from '../schema/migrate.ts'
import { type Holdfast, makeHoldfast } from './engine.ts'
import { harmless, type Log, makeLog } from './log.ts'

/** Connection options: `url` for your own Postgres, or `embedded` with a data folder for an embedded one. */
export interface ConnectOptions extends GivenSettings {
  /** A data folder, or true for the `dataDir` setting. Holdfast migrates it automatically. */
  embedded?: string | true
  /** The job kinds of this process. */
  jobs?: readonly AnyJob[]
  /** Whether to migrate the schema first. Default: only for an embedded Postgres. */
  migrate?: boolean
  /** A pino-compatible logger. Default: a built-in logger at `logLevel` that writes to standard error. */
  log?: Log
  /** The systems that own executions behind barriers, by name. Any process that runs a worker or reaper and has the owner configured asks it, whether or not it is leader. */
  owners?: Readonly<Record<string, Owner>>
  /** The name of the process that supervises this one, if any. */
  supervisor?: string
}

const knownOptions: Known<ConnectOptions> = {
  embedded: true,
  jobs: true,
  migrate: true,
  log: true,
  owners: true,
  supervisor: true,
  ...(Object.fromEntries(settingNames.map((name) => [name, true])) as Known<GivenSettings>),
}

/** Connects to Holdfast and checks that the database schema is up to date. */
export async function connect(options: ConnectOptions): Promise<Holdfast> {
  const { embedded, jobs = [], migrate: wantsMigration, log: givenLog, supervisor, owners = {}, ...given } = options
  refuseUnknown('connect', options, knownOptions)
  const asked = readConfig(given)
  checkJobs(jobs)
  const log = harmless(givenLog ?? makeLog(asked.logLevel))
  const server = embedded === undefined && asked.url ? undefined : await startServer(asked, embedded, log)
  const url = server?.url ?? (asked.url as string)
  const onPooler = poolerWarning(log)
  let store: Store | undefined
  try {
    if (wantsMigration ?? server !== undefined) await migrate(url)
    const isFound = !asked.pooled && !server && (await isTransactionPooler(url))
    if (isFound) onPooler()
    const config = isFound ? { ...asked, pooled: true } : asked
    const access = { url, isPooled: config.pooled, statementTimeoutMs: config.statementTimeoutMs, onPooler }
    store = openStore({ ...access, poolSize: config.poolSize })
    await checkSchema(store)
    return makeHoldfast({
      store,
      // one for each owner, whose barriers are marked one by one, and one for barriers whose owner is not configured here
      aside: openStore({ ...access, poolSize: Object.keys(owners).length + 1 }),
      waits: openStore({ ...access, poolSize: 1 }),
      owners,
      url,
      config,
      jobs,
      log,
      supervisor: supervisor ?? null,
      onPooler,
      stopServer: async () => server?.stop(),
    })
  } catch (error) {
    await store?.close()
    await server?.stop()
    throw error
  }
}

/** Warns once about a pooler that is not configured. */
function poolerWarning(log: Log): () => void {
  let isTold = false
  return () => {
    if (isTold) return
    isTold = true
    log.warn(
      {},
      `the database URL points to a transaction pooler, so Holdfast works without named prepared statements, LISTEN and session locks. ${poolerAdvice}`,
    )
  }
}

function checkJobs(jobs: readonly AnyJob[]): void {
  const odd = jobs.findIndex((job) => !isJob(job))
  if (odd >= 0) throw new HoldfastError('kind_invalid', `jobs[${odd}] is not a job; pass what defineJob returned.`)
  const twice = jobs.map((job) => job.kind).find((kind, index, kinds) => kinds.indexOf(kind) !== index)
  if (twice)
    throw new HoldfastError('kind_invalid', `Two kinds are named ${JSON.stringify(twice)}; kind names must be unique.`)
}

async function startServer(config: Config, embedded: string | true | undefined, log: Log) {
  if (embedded === undefined)
    throw new HoldfastError(
      'config_invalid',
      'No database is configured: pass `url` (or set HOLDFAST_URL) for your own Postgres, or `embedded: true` for an embedded one.',
    )
  return startEmbedded({
    dir: embedded === true ? config.dataDir : embedded,
    log: (line) => log.debug({ embedded: line }, 'embedded postgres'),
  })
}
