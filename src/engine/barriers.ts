import { abortOwned, type Continuation, getOwned, type OwnedRow } from '../barrier/barrier.sql.ts'
import {
  type Arrived,
  arriveIn,
  expiryOf,
  makeArriver,
  type Opened,
  openBarrierOf,
  partOf,
  partsOf,
  refuse,
  tenantOf,
  textOf,
} from '../barrier/barrier.ts'
import type { Owner } from '../barrier/owner.ts'
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { AnyJob, InputOf } from '../job/define.ts'
import { isComplete } from '../job/fan-out.ts'
import type { JobId } from '../job/id.ts'
import type { Flow } from '../job/middleware.ts'
import type { Queryable, Runner, Store } from '../postgres/store.ts'
import { runnerInside } from '../postgres/transaction.ts'
import type { SubmitOptions } from '../submit/prepare.ts'
import { prepareThrough } from '../submit/prepare-through.ts'

/** A barrier to open. */
export interface OpenBarrier<J extends AnyJob = AnyJob> {
  /** An id of your choice, unique across tenants, such as the id of the waiting execution. */
  id: string
  /** The tenant of the barrier and its continuation; required with an owner. Default: `default`. */
  tenant?: string
  /** The number of parts (named 0, 1, 2 …), or their names. */
  parts: number | readonly string[]
  /** When the barrier expires: a time, or milliseconds from now. Default: never. */
  expires?: Date | number
  /** The job to submit, once, when the last part has arrived. */
  continuation: { job: J; input: InputOf<J> } & Omit<
    SubmitOptions,
    'key' | 'tenant' | 'webhook' | 'traceparent' | 'limitKey'
  >
  /** The owner of the waiting execution: one of `connect({ owners })`, and the id that it uses for the execution. It is asked when the barrier expires. */
  owner?: { name: string; execution: string }
}

/** The current state of a barrier. */
export interface OwnedBarrier {
  id: string
  tenant: string | null
  status: 'open' | 'fired' | 'expired'
  arming: number
  total: number
  arrived: number
  /** Whether all parts have arrived; `unknown` if the count is invalid. */
  isComplete: true | false | 'unknown'
  /** The names of parts that have not arrived, at most 100. */
  missing: string[]
  openedAt: Date
  armedAt: Date
  expiresAt: Date | null
  firedAt: Date | null
  owner: { name: string; execution: string } | null
  continuation: { kind: string; job: JobId }
}

/** The tenant of a barrier, and the transaction to use. */
interface Scope {
  /** Only a barrier of this tenant. Default: all tenants. */
  tenant?: string
  /** Your transaction to run in. */
  tx?: Queryable
}

/** Standalone barriers, for executions that another system owns. */
export interface Barriers {
  /** Opens a barrier. An open barrier is re-armed with a new expiry and keeps the parts that have arrived. Fires at once if there is nothing to wait for. */
  open<J extends AnyJob>(barrier: OpenBarrier<J>, how?: { tx?: Queryable }): Promise<Opened>
  /** Records that a part has arrived. The last part fires the continuation in the same transaction. Throws part_unknown. */
  arrive(id: string, part: string | number, scope?: Scope): Promise<Arrived>
  /** Removes an open barrier; parts that arrive later are abandoned. */
  abort(id: string, scope?: Scope): Promise<'aborted' | 'fired' | 'gone'>
  /** Returns the barrier, or null if there is none. Fired and expired barriers are kept for a week. */
  get(id: string, scope?: { tenant?: string }): Promise<OwnedBarrier | null>
}

/** Makes the barriers of an engine. `idle` resolves when no arrival is being written. */
export function makeBarriers(parts: {
  store: Store
  config: Config
  owners: Readonly<Record<string, Owner>>
  flow: Flow
}): Barriers & { idle(): Promise<void> } {
  const { store, config, owners } = parts
  const arriver = makeArriver(store, config.batchSize)
  const runner = async (tx: Queryable | undefined): Promise<Runner> =>
    tx ? runnerInside(tx) : { run: (statement, params) => store.contend(statement, params) }
  return {
    async open(barrier, { tx } = {}) {
      const owner = ownerOf(barrier, owners)
      const tenant = tenantOf(barrier.tenant) ?? 'default'
      const params = {
        id: textOf('id', barrier.id),
        tenant,
        ...partsOf(barrier.parts),
        ...expiryOf(barrier.expires),
        ...owner,
        continuation: await continuationOf(parts, tenant, barrier.continuation),
      }
      return openBarrierOf(await runner(tx), params)
    },
    async arrive(id, part, { tenant, tx } = {}) {
      const arrival = { id: textOf('id', id), part: partOf(part), tenant: tenantOf(tenant) }
      return tx ? arriveIn(await runnerInside(tx), arrival) : arriver.arrive(arrival)
    },
    async abort(id, { tenant, tx } = {}) {
      const [row] = await (await runner(tx)).run(abortOwned, { id: textOf('id', id), tenant: tenantOf(tenant) })
      if (!row) return 'gone'
      return row.is_aborted ? 'aborted' : 'fired'
    },
    async get(id, { tenant } = {}) {
      const [row] = await store.run(getOwned, { id: textOf('id', id), tenant: tenantOf(tenant), shown: 100 })
      return row ? barrierOf(row) : null
    },
    idle: () => arriver.idle(),
  }
}

function ownerOf(
  { owner, tenant, expires }: OpenBarrier,
  owners: Readonly<Record<string, Owner>>,
): { owner: string | null; execution: string | null } {
  if (owner === undefined) return { owner: null, execution: null }
  const name = textOf('owner.name', owner?.name)
  const known = Object.keys(owners)
  // a process that only opens barriers needs no owners; if it has some, the name must be one of them
  if (known.length > 0 && !known.includes(name))
    throw new HoldfastError(
      'owner_unknown',
      `No owner is named ${JSON.stringify(name)}; connect({ owners }) has ${known.join(', ')}.`,
    )
  if (tenant === undefined)
    refuse('tenant is required with an owner, because the owner is asked about an execution of that tenant', tenant)
  if (expires === undefined)
    refuse('expires is required with an owner, because the owner is asked at the expiry', expires)
  return { owner: name, execution: textOf('owner.execution', owner?.execution) }
}

type Given = { job: AnyJob; input: unknown } & Omit<
  SubmitOptions,
  'key' | 'tenant' | 'webhook' | 'traceparent' | 'limitKey'
>

async function continuationOf(
  parts: { config: Config; flow: Flow },
  tenant: string,
  given: Given,
): Promise<Continuation> {
  const { job, input, ...options } = given ?? {}
  if (typeof job !== 'object' || job === null || !Array.isArray(job.stages))
    throw new HoldfastError('unknown_kind', 'The `job` of a continuation must be a value that defineJob returned.')
  const odd = Object.keys(options).find((name) => !['priority', 'runAt', 'delayMs', 'meta'].includes(name))
  if (odd !== undefined) refuse('continuation takes job, input, priority, runAt, delayMs and meta', odd)
  const {
    kind,
    queue,
    priority,
    crashBudget,
    delayMs,
    runAt,
    limitKey,
    input: json,
    meta,
  } = await prepareThrough(parts, { job, input, options: { ...options, tenant } })
  return { kind, queue, priority, crashBudget, delayMs, runAt, limitKey, input: String(json), meta }
}

function barrierOf(row: OwnedRow): OwnedBarrier {
  return {
    id: row.id,
    tenant: row.tenant,
    status: row.fired_at ? 'fired' : row.expired_at ? 'expired' : 'open',
    arming: row.arming,
    total: row.total,
    arrived: row.arrived,
    isComplete: isComplete({ total: row.total, settled: row.arrived }),
    missing: row.missing,
    openedAt: row.opened_at,
    armedAt: row.armed_at,
    expiresAt: row.expires_at,
    firedAt: row.fired_at,
    owner: row.owner !== null && row.execution !== null ? { name: row.owner, execution: row.execution } : null,
    continuation: { kind: row.kind, job: row.job_id as JobId },
  }
}
