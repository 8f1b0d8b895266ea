import { delayRule, isDelay } from './wait.ts'

/** Makes a job unique among the jobs of its kind and tenant. Unlike an idempotency key, it can be used again once it is free. */
export interface Unique {
  /** What must be unique: 1 to 300 characters. */
  key: string
  /** How long the job holds the key: until a worker has claimed it (`queued`), or until it has ended (`live`). Default: `live`. */
  while?: 'queued' | 'live'
  /** Holds the key for at least this many milliseconds after the submit, even if the job has ended by then. */
  windowMs?: number
}

/** What to do if another job holds the key. */
export const conflictWays = ['keep', 'replace', 'reschedule'] as const
/**
 * What to do if another job holds the key. `keep`: submit nothing. `replace`: cancel it if it is queued; if it has started, let it run, and
 * submit one successor. `reschedule`: submit nothing, but run it at the time of this submit if it is queued.
 */
export type OnConflict = (typeof conflictWays)[number]

/** What a submit did. `kept` and `rescheduled`: another job holds the key, and no job was submitted. */
export type SubmitOutcome = 'submitted' | 'kept' | 'replaced' | 'rescheduled'

const whiles = ['queued', 'live']

/** What is wrong with these options, as the end of a sentence that begins with `The option`; undefined if nothing is. */
export function uniqueProblem(unique: unknown, onConflict: unknown): { rule: string; value: unknown } | undefined {
  if (onConflict !== undefined && !conflictWays.some((way) => way === onConflict))
    return { rule: `onConflict must be one of ${conflictWays.join(', ')}`, value: onConflict }
  if (unique === undefined)
    return onConflict === undefined
      ? undefined
      : { rule: 'onConflict is for unique jobs only; pass unique', value: onConflict }
  if (typeof unique !== 'object' || unique === null)
    return { rule: 'unique must be { key, while, windowMs }', value: unique }
  const { key, while: held, windowMs } = unique as Record<string, unknown>
  if (!isKey(key)) return { rule: 'unique.key must be a string of 1 to 300 characters without NUL', value: key }
  if (held !== undefined && !whiles.some((one) => one === held))
    return { rule: `unique.while must be ${whiles.join(' or ')}`, value: held }
  if (windowMs !== undefined && !isDelay(windowMs))
    return { rule: `unique.windowMs must be ${delayRule}`, value: windowMs }
  return undefined
}

function isKey(key: unknown): boolean {
  return typeof key === 'string' && key.length > 0 && key.length <= 300 && !key.includes('\0') && key.isWellFormed()
}
