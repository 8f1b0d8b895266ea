import { HoldfastError } from '../errors/errors.ts'
import { type DeliveryState, isDeliveryState } from '../job/delivery-state.ts'
import { type JobId, parseJobId } from '../job/id.ts'
import type { Runner } from '../store/store.ts'
import {
  countDeliveries,
  type DeliveryRow,
  getDelivery,
  listDeliveries,
  listDeliveriesOfTenant,
  replayDeliveries,
  replayDelivery,
} from '../webhooks/deliveries.sql.ts'
import { idOf, textOf, timeOf } from './given.ts'

/** One send of an event to one receiver, however often it was tried. */
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
  /** When it is due; while it is being sent, when that sender's time is over. Null once it has ended. */
  nextAt: Date | null
  triedAt: Date | null
  tries: number
  /** What the last try was answered: the status, the beginning of the answer, what was wrong with it, and how long it took. */
  status: number | null
  excerpt: string | null
  error: string | null
  ms: number | null
  endedAt: Date | null
}

/** Whose it must be. */
export interface TenantScope {
  tenant?: string
}

/** Who does something, for the record. */
export interface Actor {
  by?: string
}

/** Which deliveries to list. */
export interface DeliveryOptions extends TenantScope {
  endpoint?: string
  job?: string
  state?: DeliveryState
  /** Only those before this one: the last id of the page before. */
  before?: string
  /** Default 50, at most 1000. */
  limit?: number
}

/** How much is to be sent. */
export interface Backlog {
  pending: number
  /** Given up; `replayAll` sends them once more. */
  dead: number
  /** Whether there were too many to count: the numbers are then the least that there are. */
  isCapped: boolean
}

/** What was sent by webhooks, and what is still to be sent. */
export interface Deliveries {
  deliveries(options?: DeliveryOptions): Promise<Delivery[]>
  /** How many are to be sent, and how many were given up. */
  backlog(scope?: TenantScope): Promise<Backlog>
  /** One delivery with its body, exactly as it is sent. Throws delivery_not_found. */
  delivery(id: string, scope?: TenantScope): Promise<Delivery & { body: string }>
  /** Sends an ended delivery once more, under its own id. Throws delivery_pending while it is still to be sent. */
  replay(id: string, scope?: TenantScope & Actor): Promise<void>
  /** Sends all dead letters once more, or what was delivered. Answers how many. */
  replayAll(
    options?: TenantScope & Actor & { endpoint?: string; since?: Date; state?: 'dead' | 'delivered' },
  ): Promise<number>
}

const mostCounted = 100_000
const nobody = '00000000-0000-0000-0000-000000000000'

/** Makes the deliveries of an engine. */
export function makeDeliveries(store: Runner): Deliveries {
  return {
    async deliveries({ endpoint, job, state, tenant, before, limit = 50 } = {}) {
      if (state !== undefined && !isDeliveryState(state))
        refuse(`state ${JSON.stringify(state)} is none of a delivery.`)
      const filter = {
        endpoint: endpoint === undefined ? null : endpointId(endpoint),
        job: job === undefined ? null : idOf(job),
        tenant: textOf('tenant', tenant),
        state: state ?? null,
        before: before === undefined ? null : deliveryId(before),
        limit: limitOf(limit),
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
      const [replayed] = await store.run(replayDelivery, { ...scope, by: textOf('by', by) })
      if (replayed) return
      // asked only after the write found nothing: before it, the answer may change
      if ((await store.run(getDelivery, scope)).length === 0) throw noDelivery(id)
      throw new HoldfastError('delivery_pending', `The delivery ${id} is still to be sent; wait until it has ended.`)
    },
    async replayAll({ endpoint, tenant, since, state = 'dead', by } = {}) {
      if (state !== 'dead' && state !== 'delivered')
        refuse(`state must be 'dead' or 'delivered', not ${JSON.stringify(state)}.`)
      const which = {
        endpoint: endpoint === undefined ? null : endpointId(endpoint),
        tenant: textOf('tenant', tenant),
        since: since === undefined ? null : timeOf('since', since),
        states: [state],
        limit: 500,
        by: textOf('by', by),
      }
      let total = 0
      for (let after = nobody; ; ) {
        const replayed = await store.run(replayDeliveries, { ...which, after })
        total += replayed.length
        if (replayed.length < which.limit) return total
        after = replayed.reduce((last, { id }) => (id > last ? id : last), after)
      }
    },
  }
}

/** The id of an endpoint, if the word is one. */
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

/** That there is no such endpoint. */
export function notFound(id: string): HoldfastError {
  return new HoldfastError('endpoint_not_found', `There is no webhook endpoint ${JSON.stringify(id)}.`)
}

function noDelivery(id: string): HoldfastError {
  return new HoldfastError('delivery_not_found', `There is no delivery ${JSON.stringify(id)}; old ones are forgotten.`)
}

/** The size of a page, if it can be one. */
export function limitOf(limit: number): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > 1000)
    refuse(`limit must be a whole number from 1 to 1000, not ${JSON.stringify(limit)}.`)
  return limit
}

/** Says what an option must be. */
export function refuse(rule: string): never {
  throw new HoldfastError('option_invalid', `The option ${rule}`)
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
