import { uuidv7 } from 'uuidv7'
import { HoldfastError } from '../errors/errors.ts'
import { type JobId, parseJobId, timeOfId } from '../job/id.ts'
import type { State } from '../job/machine.ts'
import type { Actor, TenantScope } from '../job/scope.ts'
import { idOf, limitOf, mustBeObject, textOf } from '../job/validate-argument.ts'
import type { Store } from '../postgres/store.ts'
import { type BulkRow, getBulk, listBulk, listSkipped, startBulk, stopBulk } from './bulk.sql.ts'
import { type StoredFilter, storedFilterOf } from './filter.ts'
import { type BulkOperation, type BulkState, bulkStates, type SkipReason } from './operations.ts'
import { type BulkPreview, countJobs } from './preview.ts'
import { type BulkQuestion, changeOf, type NewBulkOperation, operationOf, rateOf } from './request.ts'

/** A bulk operation, and how far it has come. */
export interface Bulk {
  id: string
  operation: BulkOperation
  /** The tenant whose jobs it changes; null for all. */
  tenant: string | null
  /** Which jobs, as conditions; those that were not set are missing. */
  filter: ShownFilter
  /** What it does with them, as it was asked for. */
  change: { from?: 'failed' | 'start'; priority?: number; runAt?: Date }
  state: BulkState
  /** How many jobs matched when it was asked for, counted up to 100,000. */
  expected: number
  /** Whether there may have been more. */
  isAtLeast: boolean
  /** How many jobs it has changed. */
  done: number
  /** How many matching jobs it has left as they were. `skipped` lists the first 10,000 of them. */
  skipped: number
  /** Some of the jobs that matched. */
  sample: JobId[]
  askedAt: Date
  askedBy: string | null
  reason: string | null
  /** Jobs per second, at most; null for no limit. */
  rate: number | null
  /** Whether a process is carrying it on at this moment. */
  isHeld: boolean
  /** The process that carries it on, or did so last. */
  holder: string | null
  movedAt: Date
  /** Why its last page failed; it is tried again. */
  error: string | null
  endedAt: Date | null
  stoppedBy: string | null
  stopReason: string | null
}

/** The conditions of a bulk operation. */
export interface ShownFilter {
  /** The kind of the jobs. */
  kind?: string
  /** Their queue. */
  queue?: string
  /** Their tenant. */
  tenant?: string
  /** The states that they may be in. */
  states: State[]
  /** Their error code. */
  error?: string
  /** Text in their error message. */
  errorText?: string
  /** Text in their input. */
  text?: string
  /** When they were submitted, at the earliest. */
  since?: Date
  /** Before when they were submitted. */
  until?: Date
  /** When they ended, at the earliest. */
  endedSince?: Date
  /** Before when they ended. */
  endedUntil?: Date
  /** Whether fan-out items are changed one by one. */
  items: boolean
}

/** A job that a bulk operation left as it was. */
export interface SkippedJob {
  job: JobId
  reason: SkipReason
  /** What the database said, if it refused the change. */
  error: string | null
  at: Date
}

/** Which bulk operations to list. */
export interface BulkListOptions extends TenantScope {
  /** Only those in this state. */
  state?: BulkState
  /** Only those asked for before this one: the last id of the previous page. */
  before?: string
  /** Maximum number of operations, at most 1000. Default: 50. */
  limit?: number
}

/** Operations on many jobs at once, which any process with a worker or a reaper carries out. */
export interface BulkOperations {
  /** Counts the jobs that an operation would change, and returns some of them. Changes nothing. */
  preview(question: BulkQuestion): Promise<BulkPreview>
  /**
   * Starts an operation on the jobs that match now; jobs that are submitted or end later are left alone. It returns at once, and goes on in the
   * background, also if this process dies. Throws bulk_matches_nothing if no job matches.
   */
  start(operation: NewBulkOperation): Promise<Bulk>
  /** Returns an operation. Throws bulk_not_found. */
  get(id: string, scope?: TenantScope): Promise<Bulk>
  /** Lists operations, newest first. */
  list(options?: BulkListOptions): Promise<Bulk[]>
  /** Lists jobs that an operation left as they were, newest first. The last one is the `before` of the next page. */
  skipped(id: string, options?: TenantScope & { before?: string; limit?: number }): Promise<SkippedJob[]>
  /** Stops an operation. What it has changed stays changed. Throws bulk_not_found, or bulk_ended if it has finished. */
  stop(id: string, options?: TenantScope & Actor & { reason?: string }): Promise<Bulk>
}

/** How many operations of one tenant may run at once. They take turns with those of others. */
const mostRunning = 20

/** Makes the bulk operations of an engine. */
export function makeBulk(store: Store): BulkOperations {
  return {
    async preview(question) {
      mustBeObject('bulk operation', question)
      const filter = storedFilterOf(operationOf(question.operation), question.filter)
      return countJobs(store, filter, question.before === undefined ? null : idOf(question.before))
    },
    start: (operation) => start(store, operation),
    get: async (id, { tenant } = {}) => find(store, id, textOf('tenant', tenant)),
    list: async (options = {}) => list(store, options),
    async skipped(id, { tenant, before, limit = 100 } = {}) {
      const page = { before: before === undefined ? null : idOf(before), limit: limitOf(limit, 1000) }
      const bulk = await find(store, id, textOf('tenant', tenant))
      const rows = await store.run(listSkipped, { id: bulk.id, ...page })
      return rows.map(({ job_id, reason, error, at }) => ({
        job: job_id as JobId,
        reason: reason as SkipReason,
        error,
        at,
      }))
    },
    stop: (id, options = {}) => stop(store, id, options),
  }
}

async function start(store: Store, request: NewBulkOperation): Promise<Bulk> {
  const change = changeOf(request)
  const { operation, rate, by, reason } = request
  const filter = storedFilterOf(operation, request.filter)
  const id = request.id === undefined ? uuidv7() : bulkIdOf(request.id)
  const row = { id, operation, tenant: filter.tenant, rate: rateOf(rate), by: textOf('by', by) }
  const why = textOf('reason', reason)
  const asked = { ...row, filter: JSON.stringify(filter), change: JSON.stringify(change), reason: why }
  const known = request.id === undefined ? undefined : await sameBulk(store, asked)
  if (known) return known
  const { count, isAtLeast, sample } = await countJobs(store, filter, null)
  if (count === 0 && !isAtLeast)
    throw new HoldfastError(
      'bulk_matches_nothing',
      `No job matches, so there is nothing to ${operation}. Nothing was changed; check the filter with a preview.`,
    )
  const counted = { expected: count, isLeast: isAtLeast, sample: sample.map((job) => job.id) }
  await store.run(startBulk, { ...asked, ...counted, most: mostRunning })
  const started = await sameBulk(store, asked)
  if (started) return started
  throw new HoldfastError(
    'bulk_limit',
    `${mostRunning} bulk operations of ${filter.tenant === null ? 'all tenants' : `the tenant ${filter.tenant}`} are running; wait until one has ended, or stop one.`,
  )
}

/** The operation with this id, if it was asked for in the same way. Throws bulk_conflict if it is another one. */
async function sameBulk(
  store: Store,
  asked: { id: string; operation: string; filter: string; change: string },
): Promise<Bulk | undefined> {
  const [row] = await store.run(getBulk, { id: asked.id, tenant: null })
  if (!row) return undefined
  const isSame =
    row.operation === asked.operation &&
    JSON.stringify(row.filter) === asked.filter &&
    JSON.stringify(row.change) === asked.change
  if (isSame) return bulkOf(row)
  throw new HoldfastError('bulk_conflict', `Another bulk operation has the id ${asked.id}; choose a new id.`)
}

async function find(store: Store, id: string, tenant: string | null): Promise<Bulk> {
  const [row] = await store.run(getBulk, { id: bulkIdOf(id), tenant })
  if (row) return bulkOf(row)
  throw new HoldfastError('bulk_not_found', `There is no bulk operation ${id}.`)
}

async function list(store: Store, options: BulkListOptions): Promise<Bulk[]> {
  mustBeObject('options of list', options)
  const { tenant, state, before, limit = 50 } = options
  if (state !== undefined && !bulkStates.includes(state))
    throw new HoldfastError(
      'option_invalid',
      `The option state must be ${bulkStates.join(', ')}, not ${String(state)}.`,
    )
  const rows = await store.run(listBulk, {
    tenant: textOf('tenant', tenant),
    state: state ?? null,
    before: before === undefined ? null : bulkIdOf(before),
    limit: limitOf(limit, 1000),
  })
  return rows.map(bulkOf)
}

async function stop(store: Store, id: string, options: TenantScope & Actor & { reason?: string }): Promise<Bulk> {
  mustBeObject('options of stop', options)
  const scope = { id: bulkIdOf(id), tenant: textOf('tenant', options.tenant) }
  await store.contend(stopBulk, { ...scope, by: textOf('by', options.by), reason: textOf('reason', options.reason) })
  const bulk = await find(store, id, scope.tenant)
  if (bulk.state === 'stopped') return bulk
  throw new HoldfastError('bulk_ended', `The bulk operation ${id} has finished; there is nothing left to stop.`)
}

function bulkIdOf(word: string): string {
  const id = typeof word === 'string' ? parseJobId(word) : null
  if (id) return id
  throw new HoldfastError(
    'id_invalid',
    `${JSON.stringify(word)} is not the id of a bulk operation; one looks like 01890a5d-ac96-774b-bcce-b302099a8057.`,
  )
}

function bulkOf(row: BulkRow): Bulk {
  const { runAt, delayMs, ...change } = row.change
  const at = runAt ?? (delayMs === undefined ? undefined : row.asked_at.getTime() + delayMs)
  return {
    id: row.id,
    operation: row.operation,
    tenant: row.tenant,
    filter: shownFilterOf(row.filter),
    change: { ...change, ...(at !== undefined && { runAt: new Date(at) }) },
    state: row.state,
    expected: row.expected,
    isAtLeast: row.is_least,
    done: row.done,
    skipped: row.skipped,
    sample: row.sample as JobId[],
    askedAt: row.asked_at,
    askedBy: row.asked_by,
    reason: row.reason,
    rate: row.rate,
    isHeld: row.is_held,
    holder: row.holder,
    movedAt: row.moved_at,
    error: row.error,
    endedAt: row.ended_at,
    stoppedBy: row.stopped_by,
    stopReason: row.stop_reason,
  }
}

function shownFilterOf({ states, items, since, until, endedSince, endedUntil, ...texts }: StoredFilter): ShownFilter {
  const set = Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== null))
  return {
    ...set,
    states,
    items,
    ...(isBound(since) && { since: timeOfId(since as JobId) }),
    ...(isBound(until) && { until: timeOfId(until as JobId) }),
    ...(endedSince !== null && { endedSince: new Date(endedSince) }),
    ...(endedUntil !== null && { endedUntil: new Date(endedUntil) }),
  }
}

/** Whether an id stands for a time that was given, and not for the beginning or the end of all ids. */
function isBound(id: string): boolean {
  return id.endsWith('-0000-0000-000000000000') && !id.startsWith('00000000-0000')
}
