import type { Runner } from '../postgres/store.ts'
import { type GatedLane, GatedLanes } from '../worker/gated-lanes.ts'
import { kindKeyOf, type Lane } from '../worker/lanes.ts'
import { postponeUnclaimableAtGates, type TrialParts, type Unclaimable } from '../worker/unclaimable.ts'
import { ApartClaims } from './apart-claims.ts'
import { claimGatedForRemote, type RemoteClaim, type RemoteClaimedRow } from './remote.sql.ts'

/** How often a claim looks at gates that other claims hold. */
const mostLooks = 5
const mostRemembered = 10_000

/** What is known about the gates of some lanes: which of the lanes have any, and where in the hints the next look starts. */
interface Known {
  gated: GatedLanes
  after: string
}

/** Claims jobs that wait at gates for remote workers. */
export class RemoteGates {
  readonly #parts: TrialParts
  readonly #known = new Map<string, Known>()
  readonly #claims: ApartClaims<GatedLane>

  constructor(parts: TrialParts) {
    this.#parts = parts
    this.#claims = new ApartClaims<GatedLane>(parts, kindKeyOf)
  }

  /** Claims through gates, if some of the lanes have any. */
  async claim(params: RemoteClaim): Promise<RemoteClaimedRow[]> {
    const { store } = this.#parts
    const known = this.#of(params.lanes)
    if (!(await known.gated.refresh(store))) return []
    return this.#claims.claim({
      lanes: known.gated.next(),
      claim: (lanes) => this.#look(store, known, { ...params, lanes, isSuspect: false }),
      postpone: (lanes) => this.#postpone(params, lanes, false),
      isRetried: true,
    })
  }

  /** Claims a suspect through its gate. */
  async claimSuspect(runner: Runner, params: RemoteClaim): Promise<RemoteClaimedRow[]> {
    const known = this.#of(params.lanes)
    if (!(await known.gated.refresh(runner))) return []
    return this.#look(runner, known, { ...params, lanes: known.gated.next(), isSuspect: true })
  }

  /** Postpones suspects at gates that can't be claimed. */
  async postponeSuspects(params: RemoteClaim): Promise<Unclaimable> {
    const { gated } = this.#of(params.lanes)
    if (!(await gated.refresh(this.#parts.store))) return { postponed: 0, lanes: [] }
    const { postponed, lanes } = await this.#postpone(params, gated.next(), true)
    const names = new Set(lanes.map(kindKeyOf))
    return { postponed, lanes: params.lanes.filter((lane) => names.has(kindKeyOf(lane))) }
  }

  /** If other claims hold the gates, it looks again. */
  async #look(
    runner: Runner,
    known: Known,
    params: Omit<RemoteClaim, 'lanes'> & { lanes: GatedLane[]; isSuspect: boolean },
  ): Promise<RemoteClaimedRow[]> {
    if (params.lanes.length === 0) return []
    for (let look = 0; look < mostLooks; look++) {
      const rows = await runner.run(claimGatedForRemote, { ...params, after: known.after })
      const told = rows.find((row) => row.id === null) as { size: number; kind: string } | undefined
      if (!params.isSuspect) known.after = told?.kind ?? ''
      const jobs = rows.filter((row): row is RemoteClaimedRow => row.id !== null)
      if (jobs.length > 0 || told?.size !== 1) return jobs
    }
    return []
  }

  #postpone(params: RemoteClaim, lanes: GatedLane[], isSuspect: boolean): Promise<Unclaimable<GatedLane>> {
    const { after } = this.#of(params.lanes)
    return postponeUnclaimableAtGates(this.#parts, { ...params, lanes, isSuspect, isRemote: true, after })
  }

  #of(lanes: readonly Lane[]): Known {
    const name = JSON.stringify(lanes.map(({ queue, kind, stageCount }) => [queue, kind, stageCount]).sort())
    const known = this.#known.get(name) ?? { gated: new GatedLanes(lanes), after: '' }
    if (this.#known.size >= mostRemembered) this.#known.clear()
    this.#known.set(name, known)
    return known
  }
}
