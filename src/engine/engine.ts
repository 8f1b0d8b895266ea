import { type Audit, audit } from '../audit/audit.ts'
import type { Owner } from '../barrier/owner.ts'
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { Wakeups } from '../events/wakeups.ts'
import type { AnyJob, InputOf, JobDefinition } from '../job/define.ts'
import type { JobId } from '../job/id.ts'
import { makeVitals, type Pulse, type Vitals } from '../service/vitals.ts'
import { checkSchema } from '../store/migrate.ts'
import type { Queryable, Store } from '../store/store.ts'
import { runnerInside } from '../store/transaction.ts'
import { cancelPatiently } from '../submit/cancel.ts'
import { type PreparedJob, prepare, type SubmitOptions } from '../submit/prepare.ts'
import { cancelJobs, redoJobs } from '../submit/submit.sql.ts'
import { type MakeSome, makeSubmitter, submitInSlices } from '../submit/submit.ts'
import type { Remote } from '../worker/remote.ts'
import { auditOptionsOf, type HowToAudit } from './audit.ts'
import { type Barriers, makeBarriers } from './barriers.ts'
import { alongside, type Deliverer, makeDeliverer } from './deliver.ts'
import { type Events, makeEngineWakeups, makeEvents } from './events.ts'
import { idOf, known, textOf } from './given.ts'
import { type Handle, makeHandle } from './handle.ts'
import { type JobLog, makeJobLog } from './job-log.ts'
import { type Keys, makeKeys } from './keys.ts'
import type { Log } from './log.ts'
import { type Metrics, makeMetrics } from './metrics.ts'
import { withKnownOptions } from './options.ts'
import { type PauseOptions, pause, resume } from './queues.ts'
import { stateOf } from './read.sql.ts'
import { makeReads, type Reads } from './reads.ts'
import { makeEngineReaper, type Reaping, reclaimChild } from './reap.ts'
import { makeEngineRemote } from './remote.ts'
import { Results } from './results.ts'
import { makeRunning } from './running.ts'
import { makeScrape } from './scrape.ts'
import { inSubmit, type Trace } from './span.ts'
import { makeWebhooks, type Webhooks } from './webhooks.ts'
import { type Mended, mendJob, type Why, why } from './why.ts'
import { makeWorking, type Working, type WorkOptions } from './work.ts'

/** What a caller may say about one job, and the transaction that it should be part of. */
export interface SubmitHow extends SubmitOptions {
  /** A `pg` client inside a transaction, or fromKysely(trx), or fromDrizzle(tx): the job exists if and only if it commits. */
  tx?: Queryable
}

/** Holdfast, connected. */
export interface Holdfast extends Reads {
  /** Submits one job. Submits that come at the same time share a commit; a lone one does not wait. */
  submit<J extends AnyJob>(job: J, input: InputOf<J>, how?: SubmitHow): Promise<Handle<J>>
  /** Submits many jobs of a kind: all of them, or none. */
  submitMany<J extends AnyJob>(
    job: J,
    all: readonly ({ input: InputOf<J> } & SubmitOptions)[],
    how?: { tx?: Queryable },
  ): Promise<Handle<J>[]>
  /** Submits jobs of several kinds: all of them, or none. */
  submitMixed(all: readonly ({ job: AnyJob; input: unknown } & SubmitOptions)[]): Promise<Handle<AnyJob>[]>
  /** A handle on a job that exists already. */
  handle<J extends AnyJob = JobDefinition>(id: string, job?: J): Handle<J>
  /** The log of changes: durable groups of readers, and looking on. */
  readonly events: Events
  /** The keys that open the HTTP door. */
  readonly keys: Keys
  /** Webhooks: endpoints of tenants, and what is sent to them. */
  readonly webhooks: Webhooks
  /** Barriers of their own, for executions that another system owns. */
  readonly barrier: Barriers
  /** For workers that are not connected to the database: what a server does in their name. */
  readonly remote: Remote
  /** Cancels a job, whether it waits or runs. Throws job_not_found, or move_illegal if it is final. */
  cancel(id: string, options?: { reason?: string; by?: string; tenant?: string }): Promise<void>
  /** Sends a failed, partial or cancelled job round again. */
  redo(id: string, options?: { from?: 'failed' | 'start'; by?: string; tenant?: string }): Promise<void>
  /** Why a job is where it is: what every source says, a verdict, and what happens next. Throws job_not_found. */
  why(id: string, scope?: { tenant?: string }): Promise<Why>
  /** Makes the repair that `why` names, if it is still right; with `dryRun` it only says what it would do. */
  mend(id: string, options?: { tenant?: string; dryRun?: boolean; by?: string }): Promise<Mended>
  /** Stops the claiming of a queue's jobs; what runs goes on. `by` and `reason` are shown to whoever wonders. */
  pauseQueue(name: string, options?: PauseOptions): Promise<void>
  resumeQueue(name: string, options?: { by?: string }): Promise<void>
  /** Starts to work on the kinds of this process, with a reaper beside it: they live and die together. */
  work(options?: WorkOptions): Promise<Working>
  /** Runs a reaper without a worker. */
  reap(): Promise<Reaping>
  /** Plans and sends webhooks without a worker or a reaper. */
  deliver(): Promise<{ stop(): Promise<void> }>
  /** Gives the jobs of a child process back at once, when its supervisor has seen it end. */
  reclaim(child: { supervisor: string; pid: number; exit?: string }): Promise<void>
  /** Checks every invariant of the database, reading only, each within a limit of time. */
  audit(options?: HowToAudit): Promise<Audit>
  /** Answers if the database does and has the schema that this program knows; throws what is wrong otherwise. */
  ready(): Promise<void>
  /** What has to turn in this process, and how long each has not: one beyond its limit has stalled. Asks the database nothing. */
  pulses(): Pulse[]
  /** What this process counted, and what the database tells of queues, sessions, groups and deliveries, in the text format of Prometheus. */
  metrics(): Promise<string>
  /** Stops whatever runs here, lets go of the database, and stops it if it is embedded. */
  close(): Promise<void>
  readonly config: Config
  readonly url: string
}

/** What an engine is made of. */
export interface EngineParts {
  store: Store
  /** Connections of their own for those who wait for other systems in a transaction. */
  aside: Store
  /** A connection of its own for those who wait for results. */
  waits: Store
  owners: Readonly<Record<string, Owner>>
  url: string
  config: Config
  jobs: readonly AnyJob[]
  log: Log
  jobLog: JobLog
  supervisor: string | null
  onPooler: () => void
  metrics: Metrics
  wakeups: Wakeups
  vitals: Vitals
  deliverer: Deliverer
  stopServer: () => Promise<void>
}

/** One of many jobs to submit, as it was given. */
type Given = { job: AnyJob; input: unknown } & SubmitOptions

/** Makes Holdfast of its parts: the one place where adapters meet rooms. */
export function makeHoldfast(
  given: Omit<EngineParts, 'metrics' | 'wakeups' | 'vitals' | 'deliverer' | 'jobLog'>,
): Holdfast {
  const made = { jobLog: makeJobLog(given.log), vitals: makeVitals(), metrics: makeMetrics('process', 'database') }
  const shared = { ...given, ...made, wakeups: makeEngineWakeups(given) }
  const { jobLog, vitals } = made
  const deliverer = makeDeliverer(shared, shared.wakeups)
  const parts: EngineParts = { ...shared, deliverer }
  const { store, config, log } = parts
  const submitter = makeSubmitter(store, config.batchSize)
  const { idle: arrivalsDone, ...barrier } = makeBarriers(parts)
  const results = new Results(parts.waits, (error) => log.warn({ err: error }, 'could not look for results'))
  const { stop: stopRemote, ...remote } = makeEngineRemote(parts, (id) => results.settled(id))
  const running = makeRunning()
  const handle = <J extends AnyJob>(id: JobId, isNew: boolean) => makeHandle<J>({ id, isNew, results })

  function prepareOne(
    job: AnyJob,
    input: unknown,
    how: SubmitOptions,
    trace: Trace,
  ): PreparedJob | Promise<PreparedJob> {
    const options = { ...how, ...trace(how) }
    if (how.webhook === undefined) return prepare(config, known(job), input, options)
    return deliverer.forJob(how).then((webhook) => prepare(config, known(job), input, options, webhook))
  }

  async function submit<J extends AnyJob>(
    job: J,
    input: InputOf<J>,
    { tx, ...how }: SubmitHow = {},
  ): Promise<Handle<J>> {
    return inSubmit(job, how.traceparent, async (trace) => {
      const prepared = await prepareOne(job, input, how, trace)
      const [first] = tx
        ? await submitInSlices(await runnerInside(tx), [prepared], 1)
        : [await submitter.submit(prepared)]
      const submitted = first as { id: JobId; isNew: boolean }
      return handle<J>(submitted.id, submitted.isNew)
    })
  }

  async function submitMany<J extends AnyJob>(
    job: J,
    all: readonly ({ input: InputOf<J> } & SubmitOptions)[],
    { tx }: { tx?: Queryable } = {},
  ): Promise<Handle<J>[]> {
    return submitMixed(
      all.map((one) => ({ ...one, job })),
      tx,
    ) as unknown as Promise<Handle<J>[]>
  }

  async function makeAll(all: readonly Given[], trace: Trace): Promise<PreparedJob[]> {
    const made: PreparedJob[] = []
    for (const { job, input, ...how } of all) {
      const one = prepareOne(job, input, how, trace)
      made.push(one instanceof Promise ? await one : one)
    }
    return made
  }

  /** Makes jobs as they are needed, unless their order matters; null if that takes time, or a look into the database. */
  function piecemeal(all: readonly Given[], trace: Trace): MakeSome | null {
    if (all.some(({ key, webhook }) => key !== undefined || webhook !== undefined)) return null
    return (from, to) => {
      const made: PreparedJob[] = []
      for (const { job, input, ...how } of all.slice(from, to)) {
        const one = prepareOne(job, input, how, trace)
        if (one instanceof Promise) {
          one.catch(() => {}) // it is asked again, by somebody who has time
          return null
        }
        made.push(one)
      }
      return made
    }
  }

  async function submitMixed(all: readonly Given[], tx?: Queryable): Promise<Handle<AnyJob>[]> {
    const [first] = all
    if (!first) return []
    return inSubmit(first.job, first.traceparent, async (trace) => {
      const submitted = tx
        ? await submitInSlices(await runnerInside(tx), await makeAll(all, trace), config.batchSize)
        : await submitter.submitMany({ count: all.length, all: () => makeAll(all, trace), some: piecemeal(all, trace) })
      return submitted.map(({ id, isNew }) => handle<AnyJob>(id, isNew))
    })
  }

  /** Whether there is no such job or it can't do that now is asked only after the write: before it, the answer may change. */
  async function explainNothing(id: JobId, move: 'cancel' | 'redo', tenant: string | null): Promise<never> {
    const [now] = await store.run(stateOf, { ids: [id], tenant })
    if (!now) throw new HoldfastError('job_not_found', `There is no job ${id}.`)
    throw new HoldfastError(
      'move_illegal',
      `Job ${id} is ${now.state}; it cannot be ${move === 'cancel' ? 'cancelled' : 'redone'} now.`,
      {
        details: { state: now.state },
      },
    )
  }

  async function close(): Promise<void> {
    await Promise.all([stopRemote(), running.stop()])
    await Promise.all([submitter.idle(), arrivalsDone()])
    jobLog.flush()
    await results.stop()
    await deliverer.close()
    await Promise.all([store.close(), parts.aside.close(), parts.waits.close()])
    await parts.stopServer()
  }

  let closing: Promise<void> | undefined
  const events = makeEvents(parts, running.begin)
  const reads = makeReads(parts)
  const webhooks = makeWebhooks(parts)
  return withKnownOptions({
    ...reads,
    events,
    webhooks,
    config,
    url: parts.url,
    barrier,
    remote,
    submit,
    submitMany,
    submitMixed: (all) => submitMixed(all),
    handle: (id) => handle(idOf(id), false),
    keys: makeKeys(store, remote),
    async cancel(id, options = {}) {
      const jobId = idOf(id)
      const tenant = textOf('tenant', options.tenant)
      const [reason, by] = [textOf('reason', options.reason), textOf('by', options.by)]
      const cancelled = await cancelPatiently(store, { ids: [jobId], tenant, reason, by }, config.statementTimeoutMs)
      if (!cancelled) await explainNothing(jobId, 'cancel', tenant)
      results.settled(jobId)
      if (cancelled?.skipped) await store.run(cancelJobs, { ids: cancelled.skipped, tenant, reason, by })
    },
    async redo(id, options = {}) {
      const jobId = idOf(id)
      const [tenant, by] = [textOf('tenant', options.tenant), textOf('by', options.by)]
      const [redone] = await store.run(redoJobs, { ids: [jobId], tenant, isFromStart: options.from === 'start', by })
      if (!redone) await explainNothing(jobId, 'redo', tenant)
    },
    why: (id, scope) => why(parts, id, scope),
    mend: (id, options) => mendJob(parts, id, options),
    pauseQueue: (name, options = {}) => pause(store, name, options),
    resumeQueue: (name, options = {}) => resume(store, name, options),
    async work(options = {}) {
      return running.begin(
        alongside(
          makeWorking(parts, options, (id) => results.settled(id)),
          deliverer,
          config.webhooks,
        ),
      )
    },
    reap: () => running.begin(alongside(makeEngineReaper(parts), deliverer, config.webhooks)),
    deliver: () => running.begin(deliverer.share()),
    audit: (options) => audit(store, auditOptionsOf(config, options)),
    reclaim: (child) => reclaimChild(parts, child),
    ready: () => checkSchema(store),
    pulses: vitals.pulses,
    metrics: makeScrape(parts.metrics, { reads, events, webhooks }),
    close: () => {
      closing ??= close()
      return closing
    },
  })
}
