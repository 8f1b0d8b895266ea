import { type Audit, audit } from '../audit/audit.ts'
import { countBulk } from '../bulk/bulk.sql.ts'
import { type BulkOperations, makeBulk } from '../bulk/bulk.ts'
import { type FailureOptions, type Failures, failuresOf } from '../bulk/failures.ts'
import type { Config } from '../config/config.ts'
import type { Events } from '../events/events.ts'
import type { AnyJob, InputOf, JobDefinition } from '../job/define.ts'
import { idOf } from '../job/validate-argument.ts'
import { type Keys, makeKeys } from '../keys/keys.ts'
import { type Limits, makeLimits } from '../limits/limits.ts'
import { makeScrape } from '../metrics/scrape.ts'
import type { Queryable } from '../postgres/store.ts'
import { type PauseOptions, pause, resume } from '../reads/queues.ts'
import { makeReads, type Reads } from '../reads/reads.ts'
import { oldSnapshotOf } from '../reads/recovery.ts'
import { Results } from '../reads/results.ts'
import type { Remote } from '../remote/remote.ts'
import type { Schedules } from '../schedule/schedules.ts'
import { checkSchema } from '../schema/migrate.ts'
import type { Pulse } from '../service/vitals.ts'
import { makeCanceller } from '../submit/cancel.ts'
import type { SubmitOptions } from '../submit/prepare.ts'
import { makeWebhooks, type Webhooks } from '../webhooks/webhooks.ts'
import { auditOptionsOf, type HowToAudit } from './audit.ts'
import { type Barriers, makeBarriers } from './barriers.ts'
import { cancelJob, redoJob } from './cancel.ts'
import { makeEngineEvents } from './events.ts'
import type { Handle } from './handle.ts'
import type { HeardName, Listener } from './listeners.ts'
import { withKnownOptions } from './options.ts'
import { type Connected, type EngineParts, makeParts } from './parts.ts'
import { type PruneReport, pruneNow } from './prune.ts'
import { type Reaping, reap, reclaimChild } from './reap.ts'
import { makeEngineRemote } from './remote.ts'
import { Running } from './running.ts'
import { makeEngineSchedules, overdueOf } from './schedules.ts'
import { type Signalled, type SignalOptions, signalJob } from './signal.ts'
import { Submissions, type SubmitHow } from './submissions.ts'
import { type Repaired, repairJob, type Why, why } from './why.ts'
import { type OnEnded, type Working, type WorkOptions, work } from './work.ts'

/** A connected Holdfast instance. */
export interface Holdfast extends Reads {
  /** Submits one job. Concurrent submits share a commit; a single submit does not wait for others. */
  submit<J extends AnyJob>(job: J, input: InputOf<J>, how?: SubmitHow): Promise<Handle<J>>
  /** Submits many jobs of one kind, atomically. */
  submitMany<J extends AnyJob>(
    job: J,
    all: readonly ({ input: InputOf<J> } & SubmitOptions)[],
    how?: { tx?: Queryable },
  ): Promise<Handle<J>[]>
  /** Submits jobs of several kinds, atomically. */
  submitMixed(all: readonly ({ job: AnyJob; input: unknown } & SubmitOptions)[]): Promise<Handle<AnyJob>[]>
  /** Returns a handle to an existing job. */
  handle<J extends AnyJob = JobDefinition>(id: string, job?: J): Handle<J>
  /** The event log: durable reader groups, and watching events. */
  readonly events: Events
  /** Limits on kinds, queues and keys, and fairness between tenants, changed at run time. */
  readonly limits: Limits
  /** The API keys for the HTTP API. */
  readonly keys: Keys
  /** Webhook endpoints of tenants, and their deliveries. */
  readonly webhooks: Webhooks
  /** Standalone barriers, for executions that another system owns. */
  readonly barrier: Barriers
  /** Schedules, which submit jobs by cron patterns or at intervals. */
  readonly schedules: Schedules
  /** Cancels, re-runs, deletes, reprioritizes or reschedules many jobs at once. */
  readonly bulk: BulkOperations
  /** What a server does on behalf of remote workers, which have no database connection. */
  readonly remote: Remote
  /** Cancels a queued, waiting or running job. Throws job_not_found, or move_illegal if it is final. */
  cancel(id: string, options?: { reason?: string; by?: string; tenant?: string }): Promise<void>
  /** Re-runs a failed, partial or cancelled job. */
  redo(id: string, options?: { from?: 'failed' | 'start'; by?: string; tenant?: string }): Promise<void>
  /**
   * Sends a signal to a job: its payload is the output of the stage that waits for it. A signal that comes before the stage is reached is kept.
   * The first signal of a name counts. Throws job_not_found, signal_unknown or signal_refused.
   */
  signal(id: string, name: string, payload?: unknown, options?: SignalOptions): Promise<Signalled>
  /** Calls a function after this process has settled, revived, quarantined or cancelled a job; returns how to stop that. */
  on(name: HeardName, listener: Listener): () => void
  /** Groups failed jobs by kind and error, with counts and the latest example of each. */
  failures(options?: FailureOptions): Promise<Failures>
  /** Explains the state of a job: what every source says, a verdict, and what happens next. Throws job_not_found. */
  why(id: string, scope?: { tenant?: string }): Promise<Why>
  /** Applies the repair that `why` names, if it still applies; with `dryRun`, only reports what it would do. */
  repair(id: string, options?: { tenant?: string; dryRun?: boolean; by?: string }): Promise<Repaired>
  /** Pauses a queue: workers stop claiming its jobs, and running jobs continue. `by` and `reason` are kept for diagnosis. */
  pauseQueue(name: string, options?: PauseOptions): Promise<void>
  /** Resumes a paused queue. `by` and `reason` are recorded with the event. */
  resumeQueue(name: string, options?: PauseOptions): Promise<void>
  /** Starts a worker for the kinds of this process, together with a reaper; they start and stop together. */
  work(options?: WorkOptions): Promise<Working>
  /** Runs a reaper without a worker. */
  reap(): Promise<Reaping>
  /** Plans and sends webhooks without a worker or a reaper. */
  deliver(): Promise<{ stop(): Promise<void> }>
  /** Revives the jobs of a child process at once, after its supervisor has seen it exit. */
  reclaim(child: { supervisor: string; pid: number; exit?: string }): Promise<void>
  /** Checks every invariant of the database. It only reads, and each check has a time limit. */
  audit(options?: HowToAudit): Promise<Audit>
  /** Removes finished jobs whose retention period has expired, as the leader does automatically; with `dryRun`, only reports them. */
  prune(options?: { dryRun?: boolean }): Promise<PruneReport>
  /** Resolves if the database responds and has the expected schema; otherwise throws the error. */
  ready(): Promise<void>
  /** The loops of this process and how long each has made no progress; a loop beyond its limit has stalled. Does not query the database. */
  pulses(): Pulse[]
  /** The metrics of this process, and of queues, sessions, groups and deliveries from the database, in the Prometheus text format. */
  metrics(): Promise<string>
  /** Stops everything that runs in this instance, disconnects from the database, and stops it if it is embedded. */
  close(): Promise<void>
  /** The effective settings. */
  readonly config: Config
  /** The URL of the database. */
  readonly url: string
}

/** Makes Holdfast of its parts. It wires rooms together and decides nothing. */
export function makeHoldfast(connected: Connected): Holdfast {
  const parts = makeParts(connected)
  const { store, config, vitals, listeners } = parts
  const running = new Running()
  const results = new Results(parts.waits, (error) => parts.log.warn({ err: error }, 'could not check for results'))
  const onEnded: OnEnded = (id) => results.settled(id)
  const submissions = new Submissions(parts, results)
  const canceller = makeCanceller(store, config.statementTimeoutMs)
  const [barrier, remote] = [makeBarriers(parts), makeEngineRemote(parts, onEnded)]
  const [reads, events, webhooks] = [makeReads(parts), makeEngineEvents(parts, running), makeWebhooks(parts)]
  const limits = makeLimits(store)

  async function close(): Promise<void> {
    await Promise.all([remote.stop(), running.stop()])
    await Promise.all([submissions.idle(), canceller.idle(), barrier.idle()])
    await results.stop()
    await closeParts(parts)
  }
  let closing: Promise<void> | undefined

  return withKnownOptions({
    ...reads,
    ...submitMethods(submissions),
    events,
    webhooks,
    barrier,
    bulk: makeBulk(store),
    remote,
    schedules: makeEngineSchedules(parts),
    config,
    url: parts.url,
    keys: makeKeys(store, remote),
    limits,
    cancel: (id, options) => cancelJob({ store, canceller, listeners, onEnded }, id, options),
    redo: (id, options) => redoJob(store, id, options),
    signal: (id, name, payload, options) => signalJob(parts, id, name, payload, options),
    on: (name, listener) => listeners.on(name, listener),
    failures: async (options = {}) => failuresOf(store, options),
    why: (id, scope) => why(parts, id, scope),
    repair: (id, options) => repairJob(parts, id, options),
    pauseQueue: (name, options = {}) => pause(store, name, options),
    resumeQueue: (name, options = {}) => resume(store, name, options),
    work: (options = {}) => work(parts, running, options, onEnded),
    reap: () => reap(parts, running),
    deliver: async () => ({ stop: await running.begin(parts.deliverer.share()) }),
    audit: (options) => audit(store, auditOptionsOf(config, options)),
    prune: (options) => pruneNow(parts, options),
    reclaim: (child) => reclaimChild(parts, child),
    ready: () => checkSchema(store),
    pulses: () => vitals.pulses(),
    metrics: makeScrape(parts.metrics, {
      reads,
      events,
      webhooks,
      limits,
      oldestSnapshot: () => oldSnapshotOf(store),
      schedules: { overdue: () => overdueOf(parts) },
      bulkRunning: async () => (await store.run(countBulk, {}))[0]?.running ?? 0,
    }),
    close: () => {
      closing ??= close()
      return closing
    },
  })
}

function submitMethods(submissions: Submissions): Pick<Holdfast, 'submit' | 'submitMany' | 'submitMixed' | 'handle'> {
  return {
    submit: async (job, input, how) => submissions.submit(job, input, how),
    submitMany: async <J extends AnyJob>(
      job: J,
      all: readonly ({ input: InputOf<J> } & SubmitOptions)[],
      { tx }: { tx?: Queryable } = {},
    ) => {
      const jobs = all.map((one) => ({ ...one, job }))
      return submissions.submitMixed(jobs, tx) as unknown as Promise<Handle<J>[]>
    },
    submitMixed: (all) => submissions.submitMixed(all),
    handle: (id) => submissions.handle(idOf(id)),
  }
}

async function closeParts({ store, aside, waits, jobLog, deliverer, stopServer }: EngineParts): Promise<void> {
  jobLog.flush()
  await deliverer.close()
  await Promise.all([store.close(), aside.close(), waits.close()])
  await stopServer()
}
