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
    write: (batch) => settleMany(options, batch),
  })
  return {
    async settle(settlement) {
      const answer = await all.add(settlement)
      if (answer instanceof Error) throw answer
      return answer
    },
    idle: () => all.idle(),
    get size() {
      return all.size
    },
  }
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
    const told = error instanceof Error ? error : new Error(String(error))
    if (same.length === 1 || isConnectionError(error)) return same.map(() => told)
    const answers: (Settled | Error)[] = []
    for (const one of same) answers.push(...(await settleApart(options, move, [one])))
    return answers
  }
}

async function settleOrRefuse(options: SettlerOptions, move: MoveKey, same: Settlement[]): Promise<Settled[]> {
  const won = await settleSame(options, move, same)
  // each row answers one caller: a second settle of the same attempt in the same batch is refused like any later one
  const answers = same.map(({ fence }): Settled => (won.delete(keyOf(fence)) ? 'settled' : 'lease_lost'))
  const refused = same.filter((_, index) => answers[index] === 'lease_lost')
  for (const sessionId of new Set(refused.map((one) => sessionOf(options, one))))
    await refuse(
      options,
      refused.filter((one) => sessionOf(options, one) === sessionId),
      move,
    )
  return answers
}

function keyOf({ id, attempt }: Moved): string {
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
async function settleSame(options: SettlerOptions, move: MoveKey, same: Settlement[]): Promise<Set<string>> {
  const fences = same.map(({ fence }) => fence)
  const untilMs = performance.now() + (options.patienceMs ?? Number.POSITIVE_INFINITY)
  for (let tries = 1; ; tries++) {
    try {
      const rows = await write(options, move, same)
      await stopSpoilt(options, rows)
      const won = new Set(rows.map(keyOf))
      if (tries === 1 || won.size === same.length) return won
      const type = announces(move === 'fail_optional' ? 'fail' : move) as string
      const earlier = await options.store.run(alreadySettled, {
        fences: fences.filter((fence) => !won.has(keyOf(fence))),
        type,
      })
      return new Set([...won, ...earlier.map(keyOf)])
    } catch (error) {
      if (!isPassing(error)) throw error
      if (options.givenUp.aborted || performance.now() >= untilMs) throw error
      options.onTrouble(error)
      await pause(Math.min(1000, 20 * 2 ** tries), options.givenUp)
    }
  }
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
async function stopSpoilt(options: SettlerOptions, rows: Moved[]): Promise<void> {
  const ids = rows[0]?.stopped ?? []
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
