import type { Fence } from '../job/id.ts'
import { announces } from '../job/machine.ts'
import { type Group, group } from '../service/group.ts'
import { pause } from '../service/service.ts'
import { isConnectionError, isRetryable } from '../store/connection.ts'
import type { Store } from '../store/store.ts'
import type { Outcome, Settled, Settlement } from './outcome.ts'
import {
  advanceJobs,
  alreadySettled,
  failJobs,
  failOptional,
  finishJobs,
  recordRefusals,
  releaseJobs,
  retryJobs,
} from './settle.sql.ts'

type Of<M extends Outcome['move']> = Settlement & { outcome: Extract<Outcome, { move: M }> }

/** Writes outcomes; those that come at the same time share a statement and a commit. */
export interface Settler {
  settle(settlement: Settlement): Promise<Settled>
  idle(): Promise<void>
  readonly size: number
}

/** What a settler needs to know of the session that it writes for. */
export interface SettlerOptions {
  store: Store
  batchSize: number
  sessionId: () => number
  /** Whether the session's lease still stands; once it is gone, a settle that can't reach the database gives up. */
  isLeaseHeld: () => boolean
  onRefused: (fences: Fence[], write: string) => void
  onTrouble: (error: unknown) => void
}

/** Makes a settler. */
export function makeSettler(options: SettlerOptions): Settler {
  const all: Group<Settlement, Settled> = group({
    most: options.batchSize,
    lanes: 2,
    write: (batch) => settleMany(options, batch),
  })
  return {
    settle: (settlement) => all.add(settlement),
    idle: () => all.idle(),
    get size() {
      return all.size
    },
  }
}

async function settleMany(options: SettlerOptions, batch: Settlement[]): Promise<Settled[]> {
  const settled = new Set<string>()
  for (const [move, same] of byMove(batch)) {
    const ids = await settleSame(options, move, same)
    for (const id of ids) settled.add(id)
    const refused = same.filter(({ fence }) => !ids.has(fence.id)).map(({ fence }) => fence)
    if (refused.length > 0) await refuse(options, refused, move)
  }
  return batch.map(({ fence }) => (settled.has(fence.id) ? 'settled' : 'lease_lost'))
}

type MoveKey = Outcome['move'] | 'fail_optional'

function byMove(batch: Settlement[]): Map<MoveKey, Settlement[]> {
  const groups = new Map<MoveKey, Settlement[]>()
  for (const settlement of batch) {
    const { outcome } = settlement
    const key = outcome.move === 'fail' && outcome.isOptional ? 'fail_optional' : outcome.move
    const same = groups.get(key)
    if (same) same.push(settlement)
    else groups.set(key, [settlement])
  }
  return groups
}

/**
 * Writes one kind of outcome until the database answers or the lease is gone. After a broken connection nobody knows
 * whether the statement was carried out, so what the next try does not find is looked up before it counts as refused.
 */
async function settleSame(options: SettlerOptions, move: MoveKey, same: Settlement[]): Promise<Set<string>> {
  const fences = same.map(({ fence }) => fence)
  for (let tries = 1; ; tries++) {
    try {
      const rows = await write(options, move, same)
      const ids = new Set(rows.map((row) => row.id))
      if (tries === 1 || ids.size === same.length) return ids
      const type = announces(move === 'fail_optional' ? 'fail' : move) as string
      const earlier = await options.store.run(alreadySettled, { fences: fences.filter(({ id }) => !ids.has(id)), type })
      return new Set([...ids, ...earlier.map((row) => row.id)])
    } catch (error) {
      if (!isConnectionError(error) && !isRetryable(error)) throw error
      options.onTrouble(error)
      if (!options.isLeaseHeld()) return new Set()
      await pause(Math.min(1000, 20 * 2 ** tries))
    }
  }
}

function write({ store, ...options }: SettlerOptions, move: MoveKey, same: Settlement[]): Promise<{ id: string }[]> {
  const fences = same.map(({ fence }) => fence)
  const sessionId = options.sessionId()
  switch (move) {
    case 'finish':
    case 'advance': {
      const ended = (same as Of<'finish' | 'advance'>[]).map(({ outcome }) => outcome)
      const params = {
        fences,
        sessionId,
        outputs: ended.map(({ output }) => output),
        stageNames: ended.map(({ stageName }) => stageName),
      }
      return move === 'finish' ? store.run(finishJobs, params) : store.run(advanceJobs, params)
    }
    case 'retry': {
      const erred = (same as Of<'retry'>[]).map(({ outcome }) => outcome)
      return store.run(retryJobs, {
        fences,
        sessionId,
        errors: erred.map(({ error }) => JSON.stringify(error)),
        delaysMs: erred.map(({ delayMs }) => delayMs),
      })
    }
    case 'fail':
    case 'fail_optional': {
      const errors = (same as Of<'fail'>[]).map(({ outcome }) => JSON.stringify(outcome.error))
      return store.run(move === 'fail' ? failJobs : failOptional, { fences, sessionId, errors })
    }
    case 'release':
      return store.run(releaseJobs, { fences, sessionId })
  }
}

async function refuse(options: SettlerOptions, fences: Fence[], write: string): Promise<void> {
  options.onRefused(fences, write)
  // the refusal itself is what counts; its record is for diagnosis, and may be lost with the connection
  await options.store.run(recordRefusals, { fences, sessionId: options.sessionId(), write }).catch(options.onTrouble)
}
