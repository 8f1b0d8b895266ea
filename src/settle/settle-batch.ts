import type { HeldFence } from '../job/id.ts'
import { announces } from '../job/machine.ts'
import { pause } from '../service/service.ts'
import { runBatch, type Told } from '../store/batch.ts'
import { isPassing } from '../store/connection.ts'
import type { Runner, Store } from '../store/store.ts'
import { stopBarriers } from './fan-out.sql.ts'
import type { Settled, Settlement } from './outcome.ts'
import { alreadySettled, type Moved, recordRefusals } from './settle.sql.ts'
import { type MoveKey, moveKeyOf, writeOutcomes } from './write.ts'

/** What a settler needs to know of the session that it writes for. */
export interface SettlerOptions {
  store: Store
  batchSize: number
  /** Fires when the worker can wait no longer for a database that does not answer. */
  givenUp: AbortSignal
  /** How long a settlement waits for such a database at most. Default: until `givenUp`. */
  patienceMs?: number
  onRefused: (fences: HeldFence[], write: string) => void
  onTrouble: (error: unknown) => void
}

/** How a settlement that could be written was answered, or why it could not be. */
export type Answer = Settled | Error

/** How outcomes are tried. */
export interface How {
  /** Skips what others hold, instead of waiting for it first. */
  isWary?: boolean
  /** Whether an earlier try may have been carried out without our hearing of it. */
  isInDoubt?: boolean
  /** How long one statement may take, and how long all of them may wait for others. */
  answerMs?: number
  patienceMs?: number
}

/** The answer to whoever wanted it written. */
export function answerOf(told: Told<Settled>): Answer {
  return told.is === 'done' ? told.answer : asError(told.error)
}

/** The error that this is, or that says so. */
export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/** Writes one sort of outcomes. Strangers share this batch: what the database refuses for one of them is told to that one alone. */
export async function settleApart(options: SettlerOptions, same: Settlement[], how: How): Promise<Told<Settled>[]> {
  const move = moveKeyOf((same[0] as Settlement).outcome)
  try {
    const told = await settleSame(options, move, same, how)
    const refused = same.filter((_, index) => isLost(told[index] as Told<Settled>))
    for (const sessionId of new Set(refused.map(({ fence }) => fence.sessionId)))
      await refuse(
        options,
        refused.map(({ fence }) => fence).filter((fence) => fence.sessionId === sessionId),
        move,
      )
    return told
  } catch (error) {
    return same.map(() => ({ is: 'refused', error }))
  }
}

function isLost(told: Told<Settled>): boolean {
  return told.is === 'done' && told.answer === 'lease_lost'
}

function keyOf({ id, attempt }: { id: string; attempt: number }): string {
  return `${id} ${attempt}`
}

/** The settlements that one statement can write: of one move, and of each attempt one. */
export function alike(batch: Settlement[]): Settlement[][] {
  const groups = new Map<string, Map<string, Settlement>>()
  const again: Settlement[] = []
  for (const settlement of batch) {
    const { fence, outcome } = settlement
    const move = moveKeyOf(outcome)
    const place = `${fence.leaseId} ${fence.slot}`
    const same = groups.get(move)
    if (same?.has(place)) again.push(settlement)
    else if (same) same.set(place, settlement)
    else groups.set(move, new Map([[place, settlement]]))
  }
  const apart = [...groups.values()].map((same) => [...same.values()])
  return again.length > 0 ? [...apart, ...alike(again)] : apart
}

/**
 * Writes one kind of outcome until the database answers: what was computed at great cost is not thrown away because a
 * connection broke, and whether the lease still stands is for the row to say. After a broken connection nobody knows
 * whether the statement was carried out, so what the next try does not find is looked up before it counts as refused.
 */
async function settleSame(
  options: SettlerOptions,
  move: MoveKey,
  same: Settlement[],
  how: How,
): Promise<Told<Settled>[]> {
  const untilMs = performance.now() + (options.patienceMs ?? Number.POSITIVE_INFINITY)
  for (let tries = 1; ; tries++) {
    try {
      return await settleOnce(options, move, same, { ...how, isInDoubt: how.isInDoubt === true || tries > 1 })
    } catch (error) {
      if (!isPassing(error)) throw error
      if (options.givenUp.aborted || performance.now() >= untilMs) throw error
      options.onTrouble(error)
      await pause(Math.min(1000, 20 * 2 ** tries), options.givenUp)
    }
  }
}

async function settleOnce(
  options: SettlerOptions,
  move: MoveKey,
  same: Settlement[],
  { isInDoubt = false, ...bounds }: How,
): Promise<Told<Settled>[]> {
  const stopped: string[] = []
  const told = await runBatch(options.store, {
    items: same,
    jobOf: ({ fence }) => fence.id,
    leaseOf: ({ fence }) => fence.leaseId,
    ...bounds,
    async run(runner, some): Promise<Settled[]> {
      const [moved] = (await writeOutcomes(runner, { move, same: some })) as [Moved]
      stopped.push(...(moved.stopped ?? []))
      const won = wonOf(moved, some.length)
      const settled = isInDoubt && moved.count < some.length ? await withEarlier(runner, move, some, won) : won
      return settled.map((isWon) => (isWon ? 'settled' : 'lease_lost'))
    },
  })
  await stopSpoilt(options, stopped)
  return told
}

/** Which of so many were settled. Each row answers one caller: a second settle of the same attempt in one batch is refused like any later one. */
function wonOf({ count, places }: Moved, size: number): boolean[] {
  const won = new Array<boolean>(size).fill(count === size)
  if (places !== null) for (const place of places.slice(1, -1).split(',')) won[Number(place) - 1] = true
  return won
}

/** The same, with those that an earlier try has settled. */
async function withEarlier(runner: Runner, move: MoveKey, same: Settlement[], won: boolean[]): Promise<boolean[]> {
  const mine = new Set(same.filter((_, index) => won[index]).map(({ fence }) => keyOf(fence)))
  const fences = same.map(({ fence }) => fence).filter((fence) => !mine.has(keyOf(fence)))
  const type = move === 'park' ? 'job.parked' : (announces(move === 'fail_optional' ? 'fail' : move) as string)
  const earlier = new Set((await runner.run(alreadySettled, { fences, type })).map(keyOf))
  return same.map(({ fence }, index) => won[index] === true || earlier.delete(keyOf(fence)))
}

/** How long a stop may hold up the outcomes behind it; what it does not come to, the reaper does. */
const stopMs = 1_000

/** One item too many failed: what is left of its barrier is cancelled. If this process dies before, the reaper does it. */
async function stopSpoilt(options: SettlerOptions, ids: string[]): Promise<void> {
  if (ids.length === 0) return
  const reason = 'More items of this fan-out failed than it tolerates.'
  const stop = () =>
    options.store.run(stopBarriers, { ids, reason }, stopMs).catch((error) => void options.onTrouble(error))
  // what another statement held the first time is free a moment later
  if ((await stop())?.[0]?.skipped) await stop()
}

async function refuse(options: SettlerOptions, fences: HeldFence[], write: string): Promise<void> {
  const { sessionId } = fences[0] as HeldFence
  options.onRefused(fences, write)
  // the refusal itself is what counts; its record is for diagnosis, and may be lost with the connection
  await options.store.run(recordRefusals, { fences, sessionId, write }).catch(options.onTrouble)
}
