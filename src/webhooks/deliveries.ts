import { HoldfastError } from '../errors/errors.ts'
import { type DeliveryState, isDeliveryState } from '../job/delivery-state.ts'
import { type JobId, lowestId, parseJobId } from '../job/id.ts'
import type { Actor, TenantScope } from '../job/scope.ts'
import { idOf, limitOf, refuse, textOf, timeOf } from '../job/validate-argument.ts'
import type { Store } from '../postgres/store.ts'
import {
  countDeliveries,
  type DeliveryRow,
  getDelivery,
  listDeliveries,
  listDeliveriesOfTenant,
  replayDeliveries,
  replayDelivery,
} from './deliveries.sql.ts'

/** An event that is sent to one receiver, however many requests that takes. */
export interface Delivery {
  id: string
  eventId: string
  seq: number
  type: string
  tenant: string
  job: JobId | null
  /** Null for the webhook of a job. */
  endpoint: string | null
  state: DeliveryState
  createdAt: Date
  /** When it is due; while it is being sent, when the claim of its sender ends. Null once it has ended. */
  nextAt: Date | null
  triedAt: Date | null
  tries: number
  /** The result of the last request: the status, the beginning of the response, the error, and how long it took. */
  status: number | null
  excerpt: string | null
  error: string | null
  ms: number | null
  endedAt: Date | null
}

/** Which deliveries to list. */
export interface DeliveryOptions extends TenantScope {
  /** Only deliveries to this endpoint. */
  endpoint?: string
  /** Only deliveries about this job. */
  job?: string
  /** Only deliveries in this state. */
  state?: DeliveryState
  /** Only deliveries older than this one: the last id of the previous page. */
  before?: string
  /** Maximum number of deliveries, at most 1000. Default: 50. */
  limit?: number
}

/** The deliveries that are not sent yet. */
export interface Backlog {
  pending: number
  /** Dead letters; `replayAll` sends them again. */
  dead: number
  /** Whether there were too many to count: the numbers are then lower bounds. */
  isCapped: boolean
}

/** The deliveries of webhooks, sent or pending. */
export interface Deliveries {
  /** Lists deliveries, newest first. */
  deliveries(options?: DeliveryOptions): Promise<Delivery[]>
  /** Counts pending deliveries and dead letters. */
  backlog(scope?: TenantScope): Promise<Backlog>
  /** Returns a delivery with its body, exactly as it is sent. Throws delivery_not_found. */
  delivery(id: string, scope?: TenantScope): Promise<Delivery & { body: string }>
  /** Sends an ended delivery again, with the same id. Throws delivery_pending if it has not ended. */
  replay(id: string, scope?: TenantScope & Actor): Promise<void>
  /** Sends all dead letters again, or all delivered ones. Returns their number. */
  replayAll(
    options?: TenantScope & Actor & { endpoint?: string; since?: Date; state?: 'dead' | 'delivered' },
  ): Promise<number>
}

const mostCounted = 100_000

/** Makes the deliveries of an engine. */
export function makeDeliveries(store: Store): Deliveries {
  return {
    async deliveries({ endpoint, job, state, tenant, before, limit = 50 } = {}) {
      if (state !== undefined && !isDeliveryState(state))
        throw new HoldfastError('option_invalid', `The option state ${JSON.stringify(state)} is not a delivery state.`)
      const filter = {
        endpoint: endpoint === undefined ? null : endpointId(endpoint),
        job: job === undefined ? null : idOf(job),
        tenant: textOf('tenant', tenant),
        state: state ?? null,
        before: before === undefined ? null : deliveryId(before),
        limit: limitOf(limit, 1000),
      }
      const isIndexed = filter.tenant !== null && filter.tenant !== 'default'
      return (await store.run(isIndexed ? listDeliveriesOfTenant : listDeliveries, filter)).map(deliveryOf)
    },
    async backlog({ tenant } = {}) {
      const [row] = await store.run(countDeliveries, { tenant: textOf('tenant', tenant), most: mostCounted })
      return { pending: row?.pending ?? 0, dead: row?.dead ?? 0, isCapped: row?.is_capped === true }
    },
    async delivery(id, { tenant } = {}) {
      const [row] = await store.run(getDelivery, { id: deliveryId(id), tenant: textOf('tenant', tenant) })
      if (!row) throw noDelivery(id)
      return { ...deliveryOf(row), body: row.body }
    },
    async replay(id, { tenant, by } = {}) {
      const scope = { id: deliveryId(id), tenant: textOf('tenant', tenant) }
      const [replayed] = await store.contend(replayDelivery, { ...scope, by: textOf('by', by) })
      if (replayed) return
      // checked only after the update found nothing: before it, the answer might change
      if ((await store.run(getDelivery, scope)).length === 0) throw noDelivery(id)
      throw new HoldfastError('delivery_pending', `The delivery ${id} has not been sent yet; wait until it has ended.`)
    },
    async replayAll({ endpoint, tenant, since, state = 'dead', by } = {}) {
      if (state !== 'dead' && state !== 'delivered') refuse("state must be 'dead' or 'delivered'", state)
      const which = {
        endpoint: endpoint === undefined ? null : endpointId(endpoint),
        tenant: textOf('tenant', tenant),
        since: since === undefined ? null : timeOf('since', since),
        states: [state],
        limit: 500,
        by: textOf('by', by),
      }
      let total = 0
      for (let after: string = lowestId; ; ) {
        const replayed = await store.contend(replayDeliveries, { ...which, after })
        total += replayed.length
        if (replayed.length < which.limit) return total
        after = replayed.reduce((last, { id }) => (id > last ? id : last), after)
      }
    },
  }
}

/** The id of an endpoint; throws endpoint_not_found if it can't be one. */
export function endpointId(id: string): string {
  const known = typeof id === 'string' ? parseJobId(id) : null
  if (!known) throw notFound(id)
  return known
}

function deliveryId(id: string): string {
  const known = typeof id === 'string' ? parseJobId(id) : null
  if (!known) throw noDelivery(id)
  return known
}

/** The error for an endpoint that does not exist. */
export function notFound(id: string): HoldfastError {
  return new HoldfastError('endpoint_not_found', `There is no webhook endpoint ${JSON.stringify(id)}.`)
}

function noDelivery(id: string): HoldfastError {
  return new HoldfastError(
    'delivery_not_found',
    `There is no delivery ${JSON.stringify(id)}; old deliveries are removed.`,
  )
}

function deliveryOf(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    eventId: row.event_id,
    seq: row.event_seq,
    type: row.type,
    tenant: row.tenant,
    job: row.job_id as JobId | null,
    endpoint: row.endpoint_id,
    state: row.state as DeliveryState,
    createdAt: row.created_at,
    nextAt: row.ended_at === null ? row.next_at : null,
    triedAt: row.claimed_at,
    tries: row.tries,
    status: row.status,
    excerpt: row.excerpt,
    error: row.error,
    ms: row.ms,
    endedAt: row.ended_at,
  }
}
