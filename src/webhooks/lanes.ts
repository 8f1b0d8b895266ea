// How many deliveries may be in flight, and of which tenant. Two promises: a slow receiver delays no fast one, and a tenant that uses all of
// its share delays no other tenant.
//
// A lane is a receiver of a tenant. A lane that takes seconds gets few deliveries at a time, and the slow lanes of a tenant together never get
// all of its share. An unknown lane counts as slow, because a tenant can create hundreds at once.
//
// A tenant may have no more in flight than its limit, and no more than is still free. So one tenant alone takes half of the total, two take a
// third each, and so on: the next tenant always finds about as much room as each of the others has.
import type { ClaimRoom } from './claim.sql.ts'

/** How many deliveries may be in flight: in total, and of one tenant. */
export interface LaneLimits {
  most: number
  mostPerTenant: number
}

/** How many deliveries an unknown lane gets, or a very slow one. */
const fewest = 2
const mostInLane = 16
/** A receiver that takes this long is slow. */
const slowMs = 1_000
/** A lane gets about as many deliveries as it can process in this time. */
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

/** The lanes of a process. */
export class Lanes {
  readonly #limits: LaneLimits
  readonly #lanes = new Map<string, Lane>()
  /** How many each tenant has in flight. The tenant whose last turn is longest ago comes first. */
  readonly #tenants = new Map<string, number>()
  #size = 0

  constructor(limits: LaneLimits) {
    this.#limits = limits
  }

  /** How many deliveries are in flight. */
  get size(): number {
    return this.#size
  }

  /** Whether a tenant may have one more in flight. */
  hasRoom(tenant: string): boolean {
    return this.#capOf() > (this.#tenants.get(tenant) ?? 0)
  }

  /** How many deliveries may be claimed. Never all that are free, so that the next tenant finds room. */
  room(): ClaimRoom {
    // idle lanes of unknown speed get the default
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
    // the most recent goes to the end of the map
    this.#lanes.delete(key)
    this.#lanes.set(key, lane)
    lane.inFlight++
    const inFlight = this.#tenants.get(tenant) ?? 0
    this.#tenants.delete(tenant)
    this.#tenants.set(tenant, inFlight + 1)
    this.#size++
    this.#forgetSome()
  }

  /** A delivery has ended. `ms` is null if it says nothing about the speed of the receiver. */
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

  /** Forgets the lanes that were used longest ago first. */
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

/** The share that slow lanes may have together. */
function slowOf(count: number): number {
  return Math.ceil(count * slowShare)
}

/** The name of a tenant contains no spaces. */
function keyOf(tenant: string, lane: string): string {
  return `${tenant} ${lane}`
}

function laneCapOf(averageMs: number | null): number {
  if (averageMs === null) return fewest
  return Math.max(fewest, Math.min(mostInLane, Math.floor(shareMs / Math.max(1, averageMs))))
}
