import type { HeldFence } from '../job/id.ts'
import { announces, type MoveName } from '../job/machine.ts'
import { isFileError, isPassing } from '../postgres/connection.ts'
import type { Runner, Store } from '../postgres/store.ts'
import { pause } from '../service/service.ts'
import { runBatch, type Told } from '../transitions/batch.ts'
import type { UnwrittenDeadlines } from './deadlines.ts'
import { stopExceeded } from './early-stop.ts'
import type { Settled, Settlement } from './outcome.ts'
import { alreadySettled, type Moved, recordRefusals } from './settle.sql.ts'
import { barrierNeedOf, type MoveKey, moveKeyOf, writeOutcomes } from './write.ts'

/** What a settler needs. */
export interface SettlerOptions {
  store: Store
  batchSize: number
  /** Aborted when the worker can no longer wait for a database that doesn't answer. */
  givenUp: AbortSignal
  /** How long a settlement waits for such a database. Default: until `givenUp`. */
  patienceMs?: number
  onRefused: (fences: HeldFence[], write: string) => void
  onError: (error: unknown) => void
}

/** The same, with the deadlines of all that the settler has not written yet. */
export interface SettleParts extends SettlerOptions {
  deadlines: UnwrittenDeadlines
}

/** The result of a settlement, or why it could not be written. */
export type Answer = Settled | Error

/** How to try to write outcomes. */
export interface How {
  /** Skips locked rows, instead of waiting for them first. */
  isWary?: boolean
  /** Rows that are known to be locked. */
  lockedRows?: ReadonlySet<string>
  /** Whether an earlier try may have been carried out although its answer was lost. */
  isInDoubt?: boolean
  /** How long one statement may take, and how long all of them together may wait for locks. */
  answerMs?: number
  patienceMs?: number
}

/** The size of an outcome, roughly in bytes. */
export function weightOf({ outcome }: Settlement): number {
  return 'output' in outcome ? (outcome.output?.length ?? 0) : 0
}

/** The answer for the caller. */
export function answerOf(told: Told<Settled>): Answer {
  return told.is === 'done' ? told.answer : asError(told.error)
}

/** This as an error. */
export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/** Writes outcomes of one move. If the database refuses one of them, the others in the batch aren't affected. */
export async function settleApart(options: SettleParts, same: Settlement[], how: How): Promise<Told<Settled>[]> {
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

/** Groups settlements so that one statement can write each group: of one move, and at most one per attempt. */
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
 * Writes outcomes of one move until the database answers: expensive results aren't thrown away because a connection
 * broke, and only the row decides whether the lease is still valid. After a broken connection, nobody knows whether the
 * statement was carried out. So the next try looks up what it doesn't find before that counts as refused.
 */
async function settleSame(options: SettleParts, move: MoveKey, same: Settlement[], how: How): Promise<Told<Settled>[]> {
  const untilMs = performance.now() + (options.patienceMs ?? Number.POSITIVE_INFINITY)
  for (let tries = 1; ; tries++) {
    try {
      return await settleOnce(options, move, same, { ...how, isInDoubt: how.isInDoubt === true || tries > 1 })
    } catch (error) {
      if (!isPassing(error)) throw error
      if (options.givenUp.aborted || performance.now() >= untilMs) throw error
      options.onError(error)
      // not awaited: as long as the database can't be reached, that would only delay the next try
      void options.deadlines.extend().catch(() => {})
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
    needOf: ({ fence: { id, leaseId } }) => ({ id, leaseId, barrier: barrierNeedOf(move) }),
    ...bounds,
    async run(runner, some): Promise<Settled[]> {
      const [moved] = (await writeOutcomes(runner, { move, same: some })) as [Moved]
      stopped.push(...(moved.stopped ?? []))
      const won = wonOf(moved, some.length)
      const settled = isInDoubt && moved.count < some.length ? await withEarlier(runner, move, some, won) : won
      return settled.map((isWon) => (isWon ? 'settled' : 'lease_lost'))
    },
  })
  await stopExceeded(options, stopped)
  return isBroken(told) ? told.map(asHeld) : told
}

/** Whether the server could write none of these because of its files. Then it is the server and not the outcomes: they are tried again later. */
function isBroken(told: Told<Settled>[]): boolean {
  return told.length > 1 && told.every((one) => one.is === 'held' || (one.is === 'refused' && isFileError(one.error)))
}

function asHeld(told: Told<Settled>): Told<Settled> {
  return told.is === 'refused' ? { is: 'held', error: told.error, isAlone: true } : told
}

/** Which settlements of a batch of that size were written. */
function wonOf({ count, places }: Moved, size: number): boolean[] {
  const won = new Array<boolean>(size).fill(count === size)
  if (places !== null) for (const place of places.slice(1, -1).split(',')) won[Number(place) - 1] = true
  return won
}

/** The moves of statements that are not called after theirs. */
const moveOf: Partial<Record<MoveKey, MoveName>> = { fail_optional: 'fail', wait: 'snooze', hold_back: 'release' }

/** The same, including those that an earlier try has written. */
async function withEarlier(runner: Runner, move: MoveKey, same: Settlement[], won: boolean[]): Promise<boolean[]> {
  const mine = new Set(same.filter((_, index) => won[index]).map(({ fence }) => keyOf(fence)))
  const fences = same.map(({ fence }) => fence).filter((fence) => !mine.has(keyOf(fence)))
  const type = move === 'park' ? 'job.parked' : (announces(moveOf[move] ?? (move as MoveName)) as string)
  const earlier = new Set((await runner.run(alreadySettled, { fences, type })).map(keyOf))
  return same.map(({ fence }, index) => won[index] === true || earlier.delete(keyOf(fence)))
}

async function refuse(options: SettlerOptions, fences: HeldFence[], write: string): Promise<void> {
  const { sessionId } = fences[0] as HeldFence
  options.onRefused(fences, write)
  // the record is only for diagnosis, so it may get lost with the connection
  await options.store.run(recordRefusals, { fences, sessionId, write }).catch(options.onError)
}
