// How many deliveries may be in flight, and whose. Two promises: a receiver that is slow delays no fast one, and a tenant
// that fills all it may delays no other tenant.
//
// A lane is a receiver of a tenant. One that takes seconds gets few at a time, and all of a tenant that are slow together
// never get all that it may have; one that was never heard of counts as slow, since a tenant can make hundreds at once.
//
// A tenant may have no more in flight than its limit, and no more than is still free. So one tenant alone takes half of
// the whole, two take a third each, and however many there are, the next one finds about as much room as each of them has.
import type { ClaimRoom } from './claim.sql.ts'

/** How many deliveries may be in flight: in all, and of one tenant. */
export interface LaneLimits {
  most: number
  mostPerTenant: number
}

/** A lane that was never heard of gets as few as a slow one. */
const fewest = 2
const mostInLane = 16
/** A receiver that takes so long is slow. */
const slowMs = 1_000
/** How many a lane gets is about how many it can take in this time. */
const shareMs = 3_200
const slowShare = 0.75
const mostKnown = 10_000

interface Lane {
  tenant: string
  name: string
  inFlight: number
  averageMs: number | null
}

interface Tenant {
  inFlight: number
  slowInFlight: number
}

/** The lanes of a process, by tenant and receiver. */
export class Lanes {
  readonly #limits: LaneLimits
  readonly #lanes = new Map<string, Lane>()
  /** Those with something in flight, the one that had its last turn longest ago first. */
  readonly #tenants = new Map<string, number>()
  #size = 0

  constructor(limits: LaneLimits) {
    this.#limits = limits
  }

  /** How many are in flight. */
  get size(): number {
    return this.#size
  }

  /** Whether a tenant may have one more in flight. */
  hasRoom(tenant: string): boolean {
    return this.#capOf() > (this.#tenants.get(tenant) ?? 0)
  }

  /** What may be claimed. Never all that is free, so that a tenant who comes next finds room. */
  room(): ClaimRoom {
    // those that are idle and unheard of get what every other lane gets
    const known = [...this.#lanes.values()].filter(({ inFlight, averageMs }) => inFlight > 0 || averageMs !== null)
    const tenants = this.#inFlightOf(known)
    const free = this.#limits.most - this.#size
    const cap = this.#capOf()
    return {
      limit: Math.ceil(Math.max(0, free) / 2),
      tenantMost: cap,
      tenantSlowMost: slowOf(cap),
      tenants: [...tenants.keys()],
      tenantMosts: [...tenants.values()].map(({ inFlight }) => Math.max(0, cap - inFlight)),
      tenantSlowMosts: [...tenants.values()].map(({ slowInFlight }) => Math.max(0, slowOf(cap) - slowInFlight)),
      most: fewest,
      laneTenants: known.map(({ tenant }) => tenant),
      lanes: known.map(({ name }) => name),
      mosts: known.map(({ averageMs, inFlight }) => Math.max(0, laneCapOf(averageMs) - inFlight)),
      slows: known.map(isSlow),
    }
  }

  begin(tenant: string, name: string): void {
    const key = keyOf(tenant, name)
    const lane = this.#lanes.get(key) ?? { tenant, name, inFlight: 0, averageMs: null }
    // the latest goes to the end of the map
    this.#lanes.delete(key)
    this.#lanes.set(key, lane)
    lane.inFlight++
    const inFlight = this.#tenants.get(tenant) ?? 0
    this.#tenants.delete(tenant)
    this.#tenants.set(tenant, inFlight + 1)
    this.#size++
    this.#forgetSome()
  }

  /** One has ended. Null if it says nothing about how fast the receiver is. */
  end(tenant: string, name: string, ms: number | null): void {
    this.#size--
    const inFlight = (this.#tenants.get(tenant) ?? 1) - 1
    if (inFlight > 0) this.#tenants.set(tenant, inFlight)
    else this.#tenants.delete(tenant)
    const lane = this.#lanes.get(keyOf(tenant, name))
    if (!lane) return
    lane.inFlight--
    if (ms !== null) lane.averageMs = lane.averageMs === null ? ms : lane.averageMs * 0.6 + ms * 0.4
  }

  #capOf(): number {
    const { most, mostPerTenant } = this.#limits
    return Math.min(mostPerTenant, Math.max(0, most - this.#size))
  }

  #inFlightOf(known: Lane[]): Map<string, Tenant> {
    const tenants = new Map([...this.#tenants].map(([name, inFlight]) => [name, { inFlight, slowInFlight: 0 }]))
    for (const lane of known) {
      const tenant = tenants.get(lane.tenant)
      if (tenant && isSlow(lane)) tenant.slowInFlight += lane.inFlight
    }
    return tenants
  }

  /** Those heard of longest ago are forgotten first. */
  #forgetSome(): void {
    for (const [key, lane] of this.#lanes) {
      if (this.#lanes.size <= mostKnown) return
      if (lane.inFlight === 0) this.#lanes.delete(key)
    }
  }
}

function isSlow({ averageMs }: Lane): boolean {
  return averageMs === null || averageMs >= slowMs
}

/** The part of a number that slow lanes may have together. */
function slowOf(count: number): number {
  return Math.ceil(count * slowShare)
}

/** The name of a tenant has no spaces. */
function keyOf(tenant: string, lane: string): string {
  return `${tenant} ${lane}`
}

function laneCapOf(averageMs: number | null): number {
  if (averageMs === null) return fewest
  return Math.max(fewest, Math.min(mostInLane, Math.floor(shareMs / Math.max(1, averageMs))))
}
