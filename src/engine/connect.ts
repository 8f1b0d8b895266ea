import type { Owner } from '../barrier/owner.ts'
import { type Config, type GivenSettings, readConfig } from '../config/config.ts'
import { settingNames } from '../config/settings.ts'
import { HoldfastError } from '../errors/errors.ts'
import { type Known, refuseUnknown } from '../errors/options.ts'
import { type AnyJob, isJob } from '../job/define.ts'
import { startEmbedded } from '../store/embedded/embedded.ts'
import { checkSchema, migrate } from '../store/migrate.ts'
import { isTransactionPooler, poolerAdvice } from '../store/pooler.ts'
import { openStore, type Store } from '../store/store.ts'
import { type Holdfast, makeHoldfast } from './engine.ts'
import { type Log, makeLog } from './log.ts'

/** How to connect: to a Postgres of yours by `url`, or to an embedded one by `embedded`, the folder of its data. */
export interface ConnectOptions extends GivenSettings {
  /** A folder, or true for the one in the settings. Migrated without being asked. */
  embedded?: string | true
  /** The kinds that this process knows. */
  jobs?: readonly AnyJob[]
  /** Whether to bring the schema up to date first. Default: only for an embedded Postgres. */
  migrate?: boolean
  /** A pino-like logger; default: one of our own at `logLevel`, writing to standard error. */
  log?: Log
  /** The systems whose executions barriers wait for, by name. Each is asked by the processes that know it and work or reap, whoever leads. */
  owners?: Readonly<Record<string, Owner>>
  /** Names the process that supervises this one, if one does. */
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

/** Connects to Holdfast. The schema is checked, so what it answers can be used. */
export async function connect(options: ConnectOptions): Promise<Holdfast> {
  const { embedded, jobs = [], migrate: wantsMigration, log: givenLog, supervisor, owners = {}, ...given } = options
  refuseUnknown('connect', options, knownOptions)
  const asked = readConfig(given)
  checkJobs(jobs)
  const log = givenLog ?? makeLog(asked.logLevel)
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
      // one for each owner, whose barriers are marked one after the other, and one for those whose owner is not known here
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

/** Warns of a pooler that nobody spoke of, once. */
function poolerWarning(log: Log): () => void {
  let isTold = false
  return () => {
    if (isTold) return
    isTold = true
    log.warn(
      {},
      `the database URL leads through a transaction pooler, so Holdfast does without prepared names, LISTEN and session locks. ${poolerAdvice}`,
    )
  }
}

function checkJobs(jobs: readonly AnyJob[]): void {
  const odd = jobs.findIndex((job) => !isJob(job))
  if (odd >= 0) throw new HoldfastError('kind_invalid', `jobs[${odd}] is not a job; pass what defineJob returned.`)
  const twice = jobs.map((job) => job.kind).find((kind, index, kinds) => kinds.indexOf(kind) !== index)
  if (twice)
    throw new HoldfastError(
      'kind_invalid',
      `Two kinds are named ${JSON.stringify(twice)}; each needs a name of its own.`,
    )
}

async function startServer(config: Config, embedded: string | true | undefined, log: Log) {
  if (embedded === undefined)
    throw new HoldfastError(
      'config_invalid',
      'No database is given: pass `url` (or set HOLDFAST_URL) for a Postgres of yours, or `embedded: true` for one in a folder.',
    )
  return startEmbedded({
    dir: embedded === true ? config.dataDir : embedded,
    log: (line) => log.debug({ embedded: line }, 'embedded postgres'),
  })
}
