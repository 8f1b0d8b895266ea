import { HoldfastError } from '../errors/errors.ts'
import { type AnyJob, isJob, isName } from './define.ts'
import { type JobId, parseJobId } from './id.ts'

/** The kind, if `defineJob` returned it; throws otherwise. */
export function known<J extends AnyJob>(job: J): J {
  if (isJob(job)) return job
  throw new HoldfastError(
    'unknown_kind',
    `The job must be a value that defineJob returned, not ${JSON.stringify(job) ?? String(job)}.`,
  )
}

/** A job id; throws id_invalid if it is not one. */
export function idOf(word: string): JobId {
  const id = typeof word === 'string' ? parseJobId(word) : null
  if (!id)
    throw new HoldfastError(
      'id_invalid',
      `${JSON.stringify(word)} is not a job id; one looks like 01890a5d-ac96-774b-bcce-b302099a8057.`,
    )
  return id
}

/** An optional string as a parameter; null if it is missing. Throws if Postgres can't store it. */
export function textOf(option: string, text: string | undefined): string | null {
  if (text === undefined) return null
  if (typeof text === 'string' && !text.includes('\0')) return text
  throw new HoldfastError('option_invalid', `The option ${option} must be a string without NUL characters.`)
}

/** Throws if a value is not an object, before its fields are read. */
export function mustBeObject(name: string, given: unknown): void {
  if (typeof given === 'object' && given !== null) return
  throw new HoldfastError(
    'option_invalid',
    `The ${name} must be an object, not ${JSON.stringify(given) ?? 'undefined'}.`,
  )
}

/** A boolean, and nothing that looks like one: `'yes'` would count as no. */
export function flagOf(option: string, flag: boolean): boolean {
  return typeof flag === 'boolean' ? flag : refuse(`${option} must be true or false`, flag)
}

/** A time, if Postgres can store it; throws otherwise. */
export function timeOf(option: string, time: Date): Date {
  const year = time instanceof Date ? time.getUTCFullYear() : Number.NaN
  if (year >= 0 && year <= 9999) return time
  throw new HoldfastError('option_invalid', `The option ${option} must be a valid Date between the years 0 and 9999.`)
}

/** The name of a queue; throws if it is invalid. */
export function queueOf(name: string): string {
  if (isName(name)) return name
  throw new HoldfastError('option_invalid', `${JSON.stringify(name)} cannot be the name of a queue.`)
}

/** The size of a page; throws unless it is from 1 to `most`. */
export function limitOf(limit: number, most: number): number {
  return wholeOf('limit', limit, most)
}

/** A whole number from 1 to `most`; throws otherwise. */
export function wholeOf(option: string, value: number, most: number): number {
  if (Number.isInteger(value) && value >= 1 && value <= most) return value
  return refuse(`${option} must be a whole number from 1 to ${most}`, value)
}

/** A position in a sequence, such as the log; throws if it is invalid. */
export function placeOf(option: string, place: number): number {
  if (Number.isSafeInteger(place) && place >= 0) return place
  return refuse(`${option} must be a non-negative whole number`, place)
}

/** Throws option_invalid: the option must follow a rule, such as `limit must be at least 1`, but has another value. */
export function refuse(rule: string, value: unknown): never {
  throw new HoldfastError('option_invalid', `The option ${rule}, not ${JSON.stringify(value) ?? String(value)}.`)
}
