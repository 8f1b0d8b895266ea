import { type Group, group, type Late } from '../service/group.ts'
import type { Told } from '../transitions/batch.ts'
import { UnwrittenDeadlines } from './deadlines.ts'
import { isKept, LateSettlements } from './late.ts'
import type { Settled, Settlement } from './outcome.ts'
import {
  type Answer,
  alike,
  answerOf,
  asError,
  type SettleParts,
  type SettlerOptions,
  settleApart,
  weightOf,
} from './settle-batch.ts'

/** Writes outcomes. Concurrent ones share a statement and a commit. */
export interface Settler {
  settle(settlement: Settlement): Promise<Settled>
  /** The same without a promise, for callers that settle tens of thousands a second. */
  put(settlement: Settlement, done: (answer: Settled | Error) => void): void
  idle(): Promise<void>
  /** How many outcomes are not written yet. */
  readonly size: number
  /** The size in bytes of their outputs. */
  readonly bytes: number
  /** Those of them that wait for a locked row, so that the database is not behind with them. */
  readonly late: { readonly size: number; readonly bytes: number }
}

/** Makes a settler. */
export function makeSettler(options: SettlerOptions): Settler {
  const deadlines = new UnwrittenDeadlines(options.store)
  const parts: SettleParts = { ...options, deadlines }
  const late = new LateSettlements(parts)
  const all: Group<Settlement, Answer> = group({
    most: options.batchSize,
    lanes: 2,
    weightOf,
    write: (batch) => settleMany(parts, late, batch),
  })
  const put: Settler['put'] = (settlement, done) => {
    const end = (answer: Answer) => {
      deadlines.delete(settlement)
      done(answer)
    }
    deadlines.add(settlement)
    all.put(settlement, end, (error) => end(asError(error)))
  }
  return {
    settle: (settlement) =>
      new Promise((resolve, reject) =>
        put(settlement, (answer) => (answer instanceof Error ? reject(answer) : resolve(answer))),
      ),
    put,
    idle: () => all.idle(),
    get size() {
      return all.size
    },
    get bytes() {
      return all.weight
    },
    get late() {
      return { size: late.size, bytes: all.lateWeight }
    },
  }
}

async function settleMany(
  options: SettleParts,
  late: LateSettlements,
  batch: Settlement[],
): Promise<(Answer | Late<Answer>)[]> {
  const answers = new Map<Settlement, Answer | Late<Answer>>()
  for (const same of alike(batch)) {
    // while some rows are locked, the next ones may be as well, and it would take a wait to find out
    const told = await settleApart(options, same, { isWary: late.size > 0, lockedRows: late.lockedRows() })
    same.forEach((settlement, index) => {
      const one = told[index] as Told<Settled>
      answers.set(settlement, isKept(settlement, one) ? late.keep(settlement, one) : answerOf(one))
    })
  }
  return batch.map((settlement) => answers.get(settlement) as Answer | Late<Answer>)
}
