import { abortOwned, type Continuation, getOwned, type OwnedRow } from '../barrier/owned.sql.ts'
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
} from '../barrier/owned.ts'
import type { Owner } from '../barrier/owner.ts'
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { AnyJob, InputOf } from '../job/define.ts'
import { isComplete } from '../job/fan-out.ts'
import type { JobId } from '../job/id.ts'
import type { Queryable, Runner, Store } from '../store/store.ts'
import { runnerInside } from '../store/transaction.ts'
import { prepare, type SubmitOptions } from '../submit/prepare.ts'

/** A barrier to open. */
export interface OpenBarrier<J extends AnyJob = AnyJob> {
  /** Yours to choose, one for all tenants; such as the id of the execution that waits. */
  id: string
  /** Whose it is, and its continuation's. Default: `default`; with an owner it must be given. */
  tenant?: string
  /** How many parts there are (they are called 0, 1, 2 …), or their names. */
  parts: number | readonly string[]
  /** Until when all parts must have arrived: a time, or milliseconds from now. Default: for ever. */
  expires?: Date | number
  /** The job to submit, once, when the last part has arrived. */
  continuation: { job: J; input: InputOf<J> } & Omit<SubmitOptions, 'key' | 'tenant' | 'webhook' | 'traceparent'>
  /** Whose execution waits: one of the owners of `connect({ owners })`, and what it calls the execution. It is asked when the barrier expires. */
  owner?: { name: string; execution: string }
}

/** A barrier, as it stands. */
export interface OwnedBarrier {
  id: string
  tenant: string | null
  status: 'open' | 'fired' | 'expired'
  arming: number
  total: number
  arrived: number
  /** Whether all parts have arrived; `unknown` if the count makes no sense. */
  isComplete: true | false | 'unknown'
  /** Parts that have not arrived, by name, at most 100 of them. */
  missing: string[]
  openedAt: Date
  armedAt: Date
  expiresAt: Date | null
  firedAt: Date | null
  owner: { name: string; execution: string } | null
  continuation: { kind: string; job: JobId }
}

interface Scope {
  tenant?: string
  /** A transaction of yours that it should be part of. */
  tx?: Queryable
}

/** Barriers of their own, for executions that another system owns. */
export interface Barriers {
  /** Opens a barrier; an open one is armed again, with a new expiry and what has arrived kept. Fires at once if there is nothing to wait for. */
  open<J extends AnyJob>(barrier: OpenBarrier<J>, how?: { tx?: Queryable }): Promise<Opened>
  /** A part has arrived. The last one fires the continuation, in the same transaction. Throws part_unknown. */
  arrive(id: string, part: string | number, scope?: Scope): Promise<Arrived>
  /** Removes an open barrier; whatever still arrives is abandoned. */
  abort(id: string, scope?: Scope): Promise<'aborted' | 'fired' | 'gone'>
  /** The barrier, or null if there is none. One that has fired or expired is remembered for a week. */
  get(id: string, scope?: { tenant?: string }): Promise<OwnedBarrier | null>
}

/** Makes the barriers of an engine. `idle` resolves when no arrival is under way. */
export function makeBarriers(parts: {
  store: Store
  config: Config
  owners: Readonly<Record<string, Owner>>
}): Barriers & { idle(): Promise<void> } {
  const { store, config, owners } = parts
  const arriver = makeArriver(store, config.batchSize)
  const runner = async (tx: Queryable | undefined): Promise<Runner> => (tx ? runnerInside(tx) : store)
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
        continuation: await continuationOf(config, barrier.continuation),
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
  // a process that only opens barriers needs no owners of its own; one that has some is taken at its word
  if (known.length > 0 && !known.includes(name))
    throw new HoldfastError(
      'owner_unknown',
      `No owner is named ${JSON.stringify(name)} here; connect({ owners }) has ${known.join(', ')}.`,
    )
  if (tenant === undefined)
    refuse('tenant must be given with an owner, for it is asked about an execution of that tenant', tenant)
  if (expires === undefined) refuse('expires must be given with an owner, for it is asked at the expiry', expires)
  return { owner: name, execution: textOf('owner.execution', owner?.execution) }
}

type Given = { job: AnyJob; input: unknown } & Omit<SubmitOptions, 'key' | 'tenant' | 'webhook' | 'traceparent'>

async function continuationOf(config: Config, given: Given): Promise<Continuation> {
  const { job, input, ...options } = given ?? {}
  if (typeof job !== 'object' || job === null || !Array.isArray(job.stages))
    throw new HoldfastError('unknown_kind', 'The continuation of a barrier takes what defineJob returned as its `job`.')
  const odd = Object.keys(options).find((name) => !['priority', 'runAt', 'delayMs', 'meta'].includes(name))
  if (odd !== undefined) refuse('continuation takes job, input, priority, runAt, delayMs and meta', odd)
  const {
    kind,
    queue,
    priority,
    crashBudget,
    delayMs,
    runAt,
    input: json,
    meta,
  } = await prepare(config, job, input, options)
  return { kind, queue, priority, crashBudget, delayMs, runAt, input: json, meta }
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
