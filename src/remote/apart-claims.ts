import { ApartLanes, type NamedLane } from '../worker/apart-lanes.ts'
import { mayBeUnclaimable, type TrialParts, type Unclaimable } from '../worker/unclaimable.ts'
import type { RemoteClaimedRow } from './remote.sql.ts'

/** A way to claim for a remote worker. */
interface ClaimWay<L> {
  lanes: L[]
  claim: (lanes: L[]) => Promise<RemoteClaimedRow[]>
  /** Postpones jobs that can't be claimed. */
  postpone: (lanes: L[]) => Promise<Unclaimable<L>>
  /** Whether to claim again at once after that. */
  isRetried: boolean
}

/** Claims for remote workers in lanes that may hold jobs that can't be claimed, which must not keep all others from being claimed. */
export class ApartClaims<L extends NamedLane> {
  readonly #onError: TrialParts['onError']
  readonly #apart: ApartLanes<L>

  constructor({ onError }: Pick<TrialParts, 'onError'>, keyOf: (lane: L) => string) {
    this.#onError = onError
    this.#apart = new ApartLanes(keyOf)
  }

  async claim(way: ClaimWay<L>): Promise<RemoteClaimedRow[]> {
    const rows = await this.#claimApart(way)
    if (rows.length > 0) return rows
    const lanes = this.#apart.together(way.lanes)
    try {
      return await way.claim(lanes)
    } catch (error) {
      if (!(await this.#isExplained(error, () => way.postpone(lanes)))) throw error
      return way.isRetried ? way.claim(this.#apart.together(way.lanes)) : []
    }
  }

  /** Claims a lane in which claims have failed, if it is time. If this one fails as well, the other lanes must not wait. */
  async #claimApart({ lanes, claim, postpone }: ClaimWay<L>): Promise<RemoteClaimedRow[]> {
    const startedMs = performance.now()
    const lane = this.#apart.next(lanes, startedMs)
    if (!lane) return []
    // other requests must not try it at the same time
    this.#apart.add([lane], { nowMs: startedMs, tookMs: 0 })
    try {
      const rows = await claim([lane])
      this.#apart.remove(lane)
      return rows
    } catch (error) {
      if (!mayBeUnclaimable(error)) throw error
      this.#onError(error)
      await postpone([lane])
      const nowMs = performance.now()
      this.#apart.add([lane], { nowMs, tookMs: nowMs - startedMs })
      return []
    }
  }

  /** Whether jobs were found that can't be claimed. They are postponed, and lanes with more of them are claimed apart from now on. */
  async #isExplained(error: unknown, postpone: () => Promise<Unclaimable<L>>): Promise<boolean> {
    if (!mayBeUnclaimable(error)) return false
    const startedMs = performance.now()
    const { postponed, lanes } = await postpone()
    const nowMs = performance.now()
    this.#apart.add(lanes, { nowMs, tookMs: nowMs - startedMs })
    return postponed + lanes.length > 0
  }
}
