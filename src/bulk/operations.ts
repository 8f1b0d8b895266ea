import { finalStates, legalFrom, type State } from '../job/machine.ts'

interface OperationRule {
  /** The states of the jobs that it can change. */
  readonly states: readonly State[]
  /** Whether it can be applied to single fan-out items. */
  readonly takesItems: boolean
  /** What it did to a job, as the end of a sentence. */
  readonly done: string
  readonly meaning: string
}

/** Every bulk operation, declared once. Validation, the HTTP API, the commands and the docs derive from it. */
export const bulkOperations = {
  cancel: {
    states: legalFrom('cancel'),
    takesItems: true,
    done: 'cancelled',
    meaning: 'Cancels jobs that have not ended, with their items.',
  },
  redo: {
    states: legalFrom('redo'),
    takesItems: true,
    done: 'queued again',
    meaning: 'Runs jobs again, from the stage where they stopped or from the start.',
  },
  delete: {
    states: finalStates,
    // the counters of a barrier are compared with its items
    takesItems: false,
    done: 'deleted',
    meaning: 'Removes finished jobs with everything that belongs to them, as retention does.',
  },
  priority: {
    states: legalFrom('claim'),
    takesItems: true,
    done: 'given the new priority',
    meaning: 'Changes the priority of queued jobs.',
  },
  reschedule: {
    states: legalFrom('claim'),
    takesItems: true,
    done: 'rescheduled',
    meaning: 'Changes when queued jobs run.',
  },
} as const satisfies Record<string, OperationRule>

/** What a bulk operation does. */
export type BulkOperation = keyof typeof bulkOperations

/** All operations. */
export const allBulkOperations = Object.keys(bulkOperations) as BulkOperation[]

/** The rule of an operation. */
export function ruleOf(operation: BulkOperation): OperationRule {
  return bulkOperations[operation]
}

/** Why a bulk operation left a job as it was. */
export const skipReasons = {
  locked: 'Another transaction held it locked, also when it was tried again.',
  changed: 'Its state had changed by the time the operation reached it.',
  gone: 'It had been removed by the time the operation reached it.',
  unread: 'A group of readers has not read its events yet.',
  undelivered: 'A webhook about it is still pending.',
  items: 'Some of its fan-out items are still live.',
  parked: 'It has run, and its outcome waits until the database accepts it.',
  awaiting: 'It waits for a signal, and comes due with it or at its timeout.',
  stray: 'It is an item of a fan-out that no longer exists.',
  refused: 'The database refused the change; `error` says why.',
} as const satisfies Record<string, string>

/** Why a bulk operation left a job as it was. */
export type SkipReason = keyof typeof skipReasons

/** The state of a bulk operation. */
export type BulkState = 'running' | 'finished' | 'stopped'

/** All states of a bulk operation. */
export const bulkStates: readonly BulkState[] = ['running', 'finished', 'stopped']
