import type { Runner } from '../postgres/store.ts'
import type { Need } from '../transitions/held-rows.sql.ts'
import { fanOutJobs } from './fan-out.sql.ts'
import type { Outcome, Settlement } from './outcome.ts'
import { parkJobs } from './park.sql.ts'
import {
  advanceJobs,
  failJobs,
  failOptional,
  finishJobs,
  holdBackJobs,
  type Moved,
  releaseJobs,
  retryJobs,
} from './settle.sql.ts'
import { awaitSignals, snoozeJobs } from './snooze.sql.ts'

type Of<M extends Outcome['move']> = Settlement & { outcome: Extract<Outcome, { move: M }> }

/** Identifies the statement that writes an outcome. */
export type MoveKey = Outcome['move'] | 'fail_optional' | 'park' | 'wait' | 'hold_back'

/** The statement that writes this outcome. */
export function moveKeyOf(outcome: Outcome): MoveKey {
  if (outcome.move === 'retry' && outcome.parked) return 'park'
  if (outcome.move === 'snooze' && outcome.signal !== undefined) return 'wait'
  if (outcome.move === 'release' && outcome.holdMs !== undefined) return 'hold_back'
  return outcome.move === 'fail' && outcome.isOptional ? 'fail_optional' : outcome.move
}

/** What a move does to barriers: an ending is counted in the barrier that the job is an item of, and a fan-out seals its own. */
export function barrierNeedOf(move: MoveKey): Need['barrier'] {
  if (move === 'finish' || move === 'fail' || move === 'fail_optional') return 'counts'
  return move === 'fanOut' ? 'seals' : 'none'
}

/** Writes outcomes of one move. */
export function writeOutcomes(runner: Runner, { move, same }: { move: MoveKey; same: Settlement[] }): Promise<Moved[]> {
  const fences = same.map(({ fence }) => fence)
  switch (move) {
    case 'finish':
    case 'advance': {
      const ended = (same as Of<'finish' | 'advance'>[]).map(({ outcome }) => outcome)
      const params = {
        fences,
        outputs: ended.map(({ output }) => output),
        stageNames: ended.map(({ stageName }) => stageName),
        flaws: ended.map(({ hasFailedItems }) => hasFailedItems === true),
      }
      return move === 'finish' ? runner.run(finishJobs, params) : runner.run(advanceJobs, params)
    }
    case 'retry': {
      const erred = (same as Of<'retry'>[]).map(({ outcome }) => outcome)
      return runner.run(retryJobs, {
        fences,
        errors: erred.map(({ error }) => JSON.stringify(error)),
        delaysMs: erred.map(({ delayMs }) => delayMs),
      })
    }
    case 'park': {
      const parked = (same as Of<'retry'>[]).map(({ outcome }) => outcome)
      return runner.run(parkJobs, {
        fences,
        errors: parked.map(({ error }) => JSON.stringify(error)),
        outcomes: parked.map((outcome) => JSON.stringify(outcome.parked)),
      })
    }
    case 'fail':
    case 'fail_optional': {
      const errors = (same as Of<'fail'>[]).map(({ outcome }) => JSON.stringify(outcome.error))
      return runner.run(move === 'fail' ? failJobs : failOptional, { fences, errors })
    }
    case 'fanOut':
      return runner.run(fanOutJobs, {
        fences,
        errors: (same as Of<'fanOut'>[]).map(({ outcome: { error } }) => (error ? JSON.stringify(error) : null)),
      })
    case 'hold_back':
      return runner.run(holdBackJobs, {
        fences,
        holdsMs: (same as Of<'release'>[]).map(({ outcome }) => outcome.holdMs ?? 0),
      })
    case 'release':
      return runner.run(releaseJobs, { fences })
    case 'snooze':
      return runner.run(snoozeJobs, {
        fences,
        delaysMs: (same as Of<'snooze'>[]).map(({ outcome }) => outcome.delayMs),
      })
    case 'wait':
      return runner.run(awaitSignals, {
        fences,
        signals: (same as Of<'snooze'>[]).map(({ outcome }) => outcome.signal as string),
      })
  }
}
