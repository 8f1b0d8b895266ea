import type { ClaimBatch } from '../transitions/claim.sql.ts'
import { ApartLanes, type NamedLane } from './apart-lanes.ts'
import { type Claim, claimJobs, claimSuspects } from './claim.sql.ts'
import { Floors } from './floors.ts'
import { claimGated, type LookRow } from './gated-claim.sql.ts'
import { type GatedLane, type GatedLanes, gatesOf, noGates } from './gated-lanes.ts'
import { keyOf, kindKeyOf, type Lane, rotated } from './lanes.ts'
import { postponeUnclaimable, postponeUnclaimableAtGates, type TrialParts, type Unclaimable } from './unclaimable.ts'

/** What every claim of a worker asks for. */
export type Mine = Pick<Claim, 'sessionId' | 'most' | 'mostBytes' | 'deadlinesMs'>

/** A claim that is about to be made. */
export interface Asking<L> {
  run: (mine: Mine) => Promise<ClaimBatch[]>
  /** Postpones jobs that can't be claimed, after it failed. */
  postpone: (mine: Mine) => Promise<Unclaimable<L>>
  /** Called with what it took. `isFilled`: there may be more. */
  onTaken?: (batches: ClaimBatch[], isFilled: boolean) => void
}

/** One of the ways to claim: jobs or suspects, past gates or through them. */
export interface ClaimWay<L extends NamedLane> {
  /** Whether it claims suspects, which run alone. */
  readonly isSuspect: boolean
  /** Lanes in which such claims fail. */
  readonly apart: ApartLanes<L>
  /** All lanes, also those that are claimed apart. */
  lanes(): L[]
  /** Prepares a claim: of this lane alone, or of all that can be claimed together. */
  ask(alone?: L): Asking<L>
}

/** Claims jobs without limits. */
export class JobsWay implements ClaimWay<Lane> {
  readonly isSuspect = false
  readonly apart = new ApartLanes(keyOf)
  readonly #parts: TrialParts
  readonly #lanes: Lane[]
  readonly #floors = new Floors()

  constructor(parts: TrialParts, lanes: Lane[]) {
    this.#parts = parts
    this.#lanes = lanes
  }

  lanes(): Lane[] {
    return this.#lanes
  }

  ask(alone?: Lane): Asking<Lane> {
    if (alone) return this.#asking([alone], [])
    const startedMs = performance.now()
    const { lanes, floors, isFull } = this.#floors.look(this.#lanes, startedMs, (all) => this.apart.together(all))
    return {
      ...this.#asking(lanes, floors),
      onTaken: (batches, isFilled) => {
        const nowMs = performance.now()
        this.#floors.raise(batches, { isFull, isFilled, ms: nowMs - startedMs, nowMs })
      },
    }
  }

  #asking(lanes: Lane[], floors: (number | null)[]): Asking<Lane> {
    return {
      run: (mine) => this.#parts.store.run(claimJobs, { ...mine, lanes, floors }),
      postpone: (mine) => postponeUnclaimable(this.#parts, { ...mine, lanes }),
    }
  }
}

/** Claims suspects without limits. They are few and have their own index, so they need no floors. */
export class SuspectsWay implements ClaimWay<Lane> {
  readonly isSuspect = true
  readonly apart = new ApartLanes(keyOf)
  readonly #parts: TrialParts
  readonly #lanes: Lane[]
  #claims = 0

  constructor(parts: TrialParts, lanes: Lane[]) {
    this.#parts = parts
    this.#lanes = lanes
  }

  lanes(): Lane[] {
    return this.#lanes
  }

  ask(alone?: Lane): Asking<Lane> {
    const lanes = alone ? [alone] : this.apart.together(rotated(this.#lanes, this.#claims++))
    return {
      run: (mine) => this.#parts.store.run(claimSuspects, { ...mine, lanes }),
      postpone: (mine) => postponeUnclaimable(this.#parts, { ...mine, lanes }),
    }
  }
}

/** Claims jobs, or suspects, through their gates. */
export class GatesWay implements ClaimWay<GatedLane> {
  readonly isSuspect: boolean
  readonly apart = new ApartLanes<NamedLane>(kindKeyOf)
  readonly #parts: TrialParts
  readonly #gated: GatedLanes
  /** What the last claim of all lanes said. */
  #gates = noGates

  constructor(parts: TrialParts, { gated, isSuspect }: { gated: GatedLanes; isSuspect: boolean }) {
    this.#parts = parts
    this.#gated = gated
    this.isSuspect = isSuspect
  }

  /** Whether gates are left that the last claim did not look at. */
  get isMore(): boolean {
    return this.#gated.isAny && this.#gates.isMore
  }

  /** When a gate opens by itself. */
  get dueMs(): number {
    return this.#gated.isAny ? this.#gates.dueMs : Number.POSITIVE_INFINITY
  }

  lanes(): GatedLane[] {
    return this.#gated.known
  }

  ask(alone?: GatedLane): Asking<GatedLane> {
    const look = {
      lanes: alone ? [alone] : this.apart.together(this.#gated.next()),
      isSuspect: this.isSuspect,
      after: alone ? '' : this.#gates.after,
    }
    return {
      run: async (mine) => {
        const rows = look.lanes.length > 0 ? await this.#parts.store.run(claimGated, { ...mine, ...look }) : []
        if (!alone) this.#gates = gatesOf(rows.find((row) => row.lease_id === null) as LookRow | undefined)
        return rows.filter((row): row is ClaimBatch => row.lease_id !== null)
      },
      postpone: (mine) => postponeUnclaimableAtGates(this.#parts, { ...mine, ...look, isRemote: false }),
    }
  }
}
