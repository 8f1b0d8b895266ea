import type { Fence } from '../job/id.ts'
import { announces } from '../job/machine.ts'
import { type Group, group } from '../service/group.ts'
import { pause } from '../service/service.ts'
import { isConnectionError, isPassing } from '../store/connection.ts'
import type { Store } from '../store/store.ts'
import { fanOutJobs, stopBarriers } from './fan-out.sql.ts'
import type { Outcome, Settled, Settlement } from './outcome.ts'
import {
  advanceJobs,
  alreadySettled,
  failJobs,
  failOptional,
  finishJobs,
  type Moved,
  recordRefusals,
  releaseJobs,
  retryJobs,
} from './settle.sql.ts'

type Of<M extends Outcome['move']> = Settlement & { outcome: Extract<Outcome, { move: M }> }

/** Writes outcomes; those that come at the same time share a statement and a commit. */
export interface Settler {
  settle(settlement: Settlement): Promise<Settled>
  /** The same without a promise, for whoever settles tens of thousands a second. */
  put(settlement: Settlement, done: (answer: Settled | Error) => void): void
  idle(): Promise<void>
  readonly size: number
}

/** What a settler needs to know of the session that it writes for. */
export interface SettlerOptions {
  store: Store
  batchSize: number
  /** The session of settlements that name none. */
  sessionId: () => number
  /** Fires when the worker can wait no longer for a database that does not answer. */
  givenUp: AbortSignal
  /** How long a settlement waits for such a database at most. Default: until `givenUp`. */
  patienceMs?: number
  onRefused: (fences: Fence[], write: string) => void
  onTrouble: (error: unknown) => void
}

/** Makes a settler. */
export function makeSettler(options: SettlerOptions): Settler {
  const all: Group<Settlement, Settled | Error> = group({
    most: options.batchSize,
    lanes: 2,
    weightOf: ({ outcome }) => ('output' in outcome ? (outcome.output?.length ?? 0) : 0),
    write: (batch) => settleMany(options, batch),
  })
  return {
    async settle(settlement) {
      const answer = await all.add(settlement)
      if (answer instanceof Error) throw answer
      return answer
    },
    put: (settlement, done) => all.put(settlement, done, (error) => done(asError(error))),
    idle: () => all.idle(),
    get size() {
      return all.size
    },
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

async function settleMany(options: SettlerOptions, batch: Settlement[]): Promise<(Settled | Error)[]> {
  const answers = new Map<Settlement, Settled | Error>()
  for (const same of alike(options, batch)) {
    const told = await settleApart(options, moveKeyOf((same[0] as Settlement).outcome), same)
    same.forEach((settlement, index) => {
      answers.set(settlement, told[index] as Settled | Error)
    })
  }
  return batch.map((settlement) => answers.get(settlement) as Settled | Error)
}

/** Strangers share this batch: what the database refuses for one of them is told to that one alone. */
async function settleApart(options: SettlerOptions, move: MoveKey, same: Settlement[]): Promise<(Settled | Error)[]> {
  try {
    return await settleOrRefuse(options, move, same)
  } catch (error) {
    const told = asError(error)
    if (same.length === 1 || isConnectionError(error)) return same.map(() => told)
    const answers: (Settled | Error)[] = []
    for (const one of same) answers.push(...(await settleApart(options, move, [one])))
    return answers
  }
}

async function settleOrRefuse(options: SettlerOptions, move: MoveKey, same: Settlement[]): Promise<Settled[]> {
  const won = await settleSame(options, move, same)
  const answers = won.map((isWon): Settled => (isWon ? 'settled' : 'lease_lost'))
  const refused = same.filter((_, index) => answers[index] === 'lease_lost')
  for (const sessionId of new Set(refused.map((one) => sessionOf(options, one))))
    await refuse(
      options,
      refused.filter((one) => sessionOf(options, one) === sessionId),
      move,
    )
  return answers
}

function keyOf({ id, attempt }: { id: string; attempt: number }): string {
  return `${id} ${attempt}`
}

type MoveKey = Outcome['move'] | 'fail_optional'

function moveKeyOf(outcome: Outcome): MoveKey {
  return outcome.move === 'fail' && outcome.isOptional ? 'fail_optional' : outcome.move
}

function sessionOf(options: SettlerOptions, { sessionId }: Settlement): number {
  return sessionId ?? options.sessionId()
}

/** Moves that end a job: their statements read the session from the row, and so can be shared by many. */
const sharedMoves: ReadonlySet<MoveKey> = new Set(['finish', 'fail', 'fail_optional'])

/** The settlements that one statement can write. */
function alike(options: SettlerOptions, batch: Settlement[]): Settlement[][] {
  const groups = new Map<string, Settlement[]>()
  for (const settlement of batch) {
    const move = moveKeyOf(settlement.outcome)
    const key = sharedMoves.has(move) ? move : `${move} ${sessionOf(options, settlement)}`
    const same = groups.get(key)
    if (same) same.push(settlement)
    else groups.set(key, [settlement])
  }
  return [...groups.values()]
}

/**
 * Writes one kind of outcome until the database answers: what was computed at great cost is not thrown away because a
 * connection broke, and whether the lease still stands is for the row to say. After a broken connection nobody knows
 * whether the statement was carried out, so what the next try does not find is looked up before it counts as refused.
 */
async function settleSame(options: SettlerOptions, move: MoveKey, same: Settlement[]): Promise<boolean[]> {
  const untilMs = performance.now() + (options.patienceMs ?? Number.POSITIVE_INFINITY)
  for (let tries = 1; ; tries++) {
    try {
      const [moved] = (await write(options, move, same)) as [Moved]
      await stopSpoilt(options, moved)
      const won = wonOf(moved, same.length)
      return tries === 1 || moved.count === same.length ? won : await withEarlier(options, move, same, won)
    } catch (error) {
      if (!isPassing(error)) throw error
      if (options.givenUp.aborted || performance.now() >= untilMs) throw error
      options.onTrouble(error)
      await pause(Math.min(1000, 20 * 2 ** tries), options.givenUp)
    }
  }
}

/** Which of so many were settled. Each row answers one caller: a second settle of the same attempt in one batch is refused like any later one. */
function wonOf({ count, places }: Moved, size: number): boolean[] {
  const won = new Array<boolean>(size).fill(count === size)
  if (places !== null) for (const place of places.slice(1, -1).split(',')) won[Number(place) - 1] = true
  return won
}

/** The same, with those that an earlier try has settled. */
async function withEarlier(
  options: SettlerOptions,
  move: MoveKey,
  same: Settlement[],
  won: boolean[],
): Promise<boolean[]> {
  const mine = new Set(same.filter((_, index) => won[index]).map(({ fence }) => keyOf(fence)))
  const fences = same.map(({ fence }) => fence).filter((fence) => !mine.has(keyOf(fence)))
  const type = announces(move === 'fail_optional' ? 'fail' : move) as string
  const earlier = new Set((await options.store.run(alreadySettled, { fences, type })).map(keyOf))
  return same.map(({ fence }, index) => won[index] === true || earlier.delete(keyOf(fence)))
}

function write(options: SettlerOptions, move: MoveKey, same: Settlement[]): Promise<Moved[]> {
  const { store } = options
  const fences = same.map(({ fence }) => fence)
  const sessionId = sessionOf(options, same[0] as Settlement)
  switch (move) {
    case 'finish':
    case 'advance': {
      const ended = (same as Of<'finish' | 'advance'>[]).map(({ outcome }) => outcome)
      const params = {
        fences,
        sessionId,
        outputs: ended.map(({ output }) => output),
        stageNames: ended.map(({ stageName }) => stageName),
        flaws: ended.map(({ hasFlaws }) => hasFlaws === true),
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
    case 'fanOut':
      return store.run(fanOutJobs, { fences, sessionId })
    case 'release':
      return store.run(releaseJobs, { fences, sessionId })
  }
}

/** One item too many failed: what is left of its barrier is cancelled. If this process dies before, the reaper does it. */
async function stopSpoilt(options: SettlerOptions, { stopped }: Moved): Promise<void> {
  const ids = stopped ?? []
  if (ids.length === 0) return
  const reason = 'More items of this fan-out failed than it tolerates.'
  const stop = () => options.store.run(stopBarriers, { ids, reason }).catch((error) => void options.onTrouble(error))
  // what another statement held the first time is free a moment later
  if ((await stop())?.[0]?.skipped) await stop()
}

async function refuse(options: SettlerOptions, mine: Settlement[], write: string): Promise<void> {
  const fences = mine.map(({ fence }) => fence)
  const sessionId = sessionOf(options, mine[0] as Settlement)
  options.onRefused(fences, write)
  // the refusal itself is what counts; its record is for diagnosis, and may be lost with the connection
  await options.store.run(recordRefusals, { fences, sessionId, write }).catch(options.onTrouble)
}
