import type { Runner, Store } from '../postgres/store.ts'
import { GatedLanes } from '../worker/gated-lanes.ts'
import type { Lane } from '../worker/lanes.ts'
import { mayBeUnclaimable, postponeUnclaimableAtGates, type TrialParts } from '../worker/unclaimable.ts'
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

  constructor(parts: TrialParts) {
    this.#parts = parts
  }

  /** Claims through gates, if some of the lanes have any. One job that can't be claimed must not keep all others from being claimed. */
  async claim(params: RemoteClaim): Promise<RemoteClaimedRow[]> {
    const { store } = this.#parts
    try {
      return await this.#look(store, params, false)
    } catch (error) {
      if (!mayBeUnclaimable(error) || (await this.#postpone(params)) === 0) throw error
      return this.#look(store, params, false)
    }
  }

  /** Claims a suspect through its gate. */
  claimSuspect(runner: Runner, params: RemoteClaim): Promise<RemoteClaimedRow[]> {
    return this.#look(runner, params, true)
  }

  /** If other claims hold the gates, it looks again. */
  async #look(runner: Runner | Store, params: RemoteClaim, isSuspect: boolean): Promise<RemoteClaimedRow[]> {
    const known = this.#of(params.lanes)
    const lanes = await known.gated.next(runner)
    if (lanes.length === 0) return []
    for (let look = 0; look < mostLooks; look++) {
      const rows = await runner.run(claimGatedForRemote, { ...params, lanes, isSuspect, after: known.after })
      const told = rows.find((row) => row.id === null) as { size: number; kind: string } | undefined
      if (!isSuspect) known.after = told?.kind ?? ''
      const jobs = rows.filter((row): row is RemoteClaimedRow => row.id !== null)
      if (jobs.length > 0 || told?.size !== 1) return jobs
    }
    return []
  }

  async #postpone(params: RemoteClaim): Promise<number> {
    const { gated, after } = this.#of(params.lanes)
    const lanes = await gated.next(this.#parts.store)
    return postponeUnclaimableAtGates(this.#parts, { ...params, lanes, isSuspect: false, isRemote: true, after })
  }

  #of(lanes: readonly Lane[]): Known {
    const name = JSON.stringify(lanes.map(({ queue, kind, stageCount }) => [queue, kind, stageCount]).sort())
    const known = this.#known.get(name) ?? { gated: new GatedLanes(lanes), after: '' }
    if (this.#known.size >= mostRemembered) this.#known.clear()
    this.#known.set(name, known)
    return known
  }
}
