import { lockedError } from '../postgres/contended.ts'
import type { Runner, Store } from '../postgres/store.ts'
import { type Group, group } from '../service/group.ts'
import { pause } from '../service/service.ts'
import { runBatch, type Told } from '../transitions/batch.ts'
import type { CancelledRow } from '../transitions/cancel.sql.ts'
import { cancelJobs, liveOnes } from './submit.sql.ts'

/** A job to cancel, with what to record about it. */
export interface Cancel {
  id: string
  tenant: string | null
  reason: string | null
  by: string | null
}

/** Cancels jobs. Concurrent cancels share a statement. */
export interface Canceller {
  /**
   * Cancels a job. While it is locked, or another statement is moving it, the cancel is retried, without holding a
   * connection in between. Resolves with undefined if the job has ended, or doesn't exist.
   */
  cancel(cancel: Cancel): Promise<CancelledRow | undefined>
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
}

/** `moving`: another statement was moving the job, and it has not ended. */
type Answer = CancelledRow | undefined | 'moving'

/** More at once might take too long, because some of them may be parents. */
const mostTogether = 200

/** Makes a canceller, which retries each cancel for that long. */
export function makeCanceller(store: Store, forMs: number): Canceller {
  // while some rows are locked, others may be as well, and no cancel should have to wait to find out
  let held = 0
  const first = groupOn(store, 2, () => held > 0)
  // retries are kept apart, so that they don't delay first tries
  const later = groupOn(store, 1, () => true)
  return {
    async cancel(cancel) {
      const untilMs = performance.now() + forMs
      for (let tries = 1; ; tries++) {
        const told = await (tries === 1 ? first : later).add(cancel)
        if (told.is === 'refused') throw told.error
        if (told.is === 'done' && told.answer !== 'moving') return told.answer
        if (performance.now() >= untilMs)
          throw lockedError(`The job ${cancel.id}`, told.is === 'held' ? told.error : undefined)
        held += 1
        await pause(told.is === 'held' ? Math.min(1_000, 50 * 2 ** tries) : Math.min(500, 2 ** tries))
        held -= 1
      }
    },
    idle: async () => void (await Promise.all([first.idle(), later.idle()])),
  }
}

function groupOn(store: Store, lanes: number, isWary: () => boolean): Group<Cancel, Told<Answer>> {
  return group({ most: mostTogether, lanes, write: (all) => cancelAll(store, all, isWary()) })
}

/** Cancels a batch. A job that is locked, or that the database refuses, doesn't affect the others. */
async function cancelAll(store: Store, all: Cancel[], isWary: boolean): Promise<Told<Answer>[]> {
  const told = new Map<Cancel, Told<Answer>>()
  for (const alike of alikeOf(all)) {
    const answers = await runBatch(store, {
      items: alike,
      run: cancelSome,
      isWary: isWary || alike.length > 1,
    }).catch((error) => alike.map((): Told<Answer> => ({ is: 'refused', error })))
    for (const [index, cancel] of alike.entries()) told.set(cancel, answers[index] as Told<Answer>)
  }
  return all.map((cancel) => told.get(cancel) as Told<Answer>)
}

/** Groups cancels so that one statement can do each group: for the same tenant and reason, and by the same caller. */
function alikeOf(all: Cancel[]): Cancel[][] {
  const groups = new Map<string, Cancel[]>()
  for (const cancel of all) {
    const key = JSON.stringify([cancel.tenant, cancel.reason, cancel.by])
    const alike = groups.get(key)
    if (alike) alike.push(cancel)
    else groups.set(key, [cancel])
  }
  return [...groups.values()]
}

async function cancelSome(runner: Runner, alike: Cancel[]): Promise<Answer[]> {
  const { tenant, reason, by } = alike[0] as Cancel
  const rows = await runner.run(cancelJobs, { ids: alike.map(({ id }) => id), tenant, reason, by })
  const cancelled = new Map(rows.map((row) => [row.id, row]))
  const left = alike.map(({ id }) => id).filter((id) => !cancelled.has(id))
  const live = new Set(left.length > 0 ? (await runner.run(liveOnes, { ids: left, tenant })).map(({ id }) => id) : [])
  return alike.map(({ id }) => {
    const row = cancelled.get(id)
    // a second cancel of the same job in this batch finds that it has ended
    cancelled.delete(id)
    return row ?? (live.has(id) ? 'moving' : undefined)
  })
}
