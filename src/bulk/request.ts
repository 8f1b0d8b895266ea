import { HoldfastError } from '../errors/errors.ts'
import { nearest } from '../errors/nearest.ts'
import { isPriority } from '../job/names.ts'
import { mustBeObject, refuse, timeOf } from '../job/validate-argument.ts'
import type { StoredChange } from './bulk.sql.ts'
import type { BulkFilter } from './filter.ts'
import { allBulkOperations, type BulkOperation } from './operations.ts'

/** A bulk operation to preview. */
export interface BulkQuestion {
  /** What to do with the jobs. */
  operation: BulkOperation
  /** Which jobs. */
  filter: BulkFilter
  /** Counts only jobs submitted before this one: the `next` of the previous preview. */
  before?: string
}

/** A bulk operation to start. */
export interface NewBulkOperation extends Omit<BulkQuestion, 'before'> {
  /** For `redo`: where jobs start, at the stage where they stopped or at the first. Default: `failed`. */
  from?: 'failed' | 'start'
  /** For `priority`: the new priority, from 1 (first) to 4 (last). */
  priority?: number
  /** For `reschedule`: when the jobs run. */
  runAt?: Date
  /** For `reschedule`: how long after this call the jobs run. */
  delayMs?: number
  /** Jobs per second, at most. Default: as fast as the database allows. */
  rate?: number
  /** Why; recorded with the operation and with each job. */
  reason?: string
  /** Who; recorded with the operation and with each job. */
  by?: string
  /** An id for the operation, a UUID. If a call is repeated with the same id, it returns the operation that exists. Default: a new one. */
  id?: string
}

const longestDelayMs = 3_153_600_000_000
const highestRate = 100_000

/** The operation, if there is one of that name. */
export function operationOf(word: string): BulkOperation {
  const found = allBulkOperations.find((operation) => operation === word)
  if (found) return found
  const near = typeof word === 'string' ? nearest(word, allBulkOperations) : undefined
  throw new HoldfastError(
    'option_invalid',
    `${JSON.stringify(word)} is not a bulk operation${near ? `; did you mean ${near}?` : '.'} The operations are ${allBulkOperations.join(', ')}.`,
  )
}

/** The rate, checked. */
export function rateOf(rate: number | undefined): number | null {
  if (rate === undefined) return null
  if (Number.isInteger(rate) && rate >= 1 && rate <= highestRate) return rate
  return refuse(`rate must be a whole number of jobs per second, from 1 to ${highestRate}`, rate)
}

const ownOptions = { from: 'redo', priority: 'priority', runAt: 'reschedule', delayMs: 'reschedule' } as const

/** What the operation does with each job, checked. */
export function changeOf(request: NewBulkOperation): StoredChange {
  mustBeObject('bulk operation', request)
  const operation = operationOf(request.operation)
  for (const [option, owner] of Object.entries(ownOptions))
    if (request[option as keyof typeof ownOptions] !== undefined && operation !== owner)
      throw new HoldfastError(
        'option_invalid',
        `The option ${option} belongs to ${owner}, not to ${operation}; omit it.`,
      )
  if (operation === 'redo') return { from: fromOf(request.from) }
  if (operation === 'priority') return { priority: priorityOf(request.priority) }
  if (operation === 'reschedule') return timeOfChange(request)
  return {}
}

function fromOf(from: 'failed' | 'start' = 'failed'): 'failed' | 'start' {
  return from === 'failed' || from === 'start' ? from : refuse('from must be failed or start', from)
}

function priorityOf(priority: number | undefined): number {
  return isPriority(priority)
    ? priority
    : refuse('priority must be a whole number from 1 (first) to 4 (last)', priority)
}

function timeOfChange({ runAt, delayMs }: NewBulkOperation): StoredChange {
  if ((runAt === undefined) === (delayMs === undefined))
    throw new HoldfastError(
      'option_invalid',
      'A reschedule takes either runAt or delayMs: say when the jobs should run.',
    )
  if (runAt !== undefined) return { runAt: timeOf('runAt', runAt).toISOString() }
  const isGood = typeof delayMs === 'number' && delayMs >= 0 && delayMs <= longestDelayMs
  return isGood ? { delayMs } : refuse('delayMs must be from 0 to 100 years, in milliseconds', delayMs)
}
