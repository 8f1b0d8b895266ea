import { HoldfastError } from '../errors/errors.ts'
import { type AnyJob, isJob, isName } from '../job/define.ts'
import { firstIdAt, type JobId, parseJobId } from '../job/id.ts'
import { isState, type State } from '../job/machine.ts'
import type { ListFilter } from './read.sql.ts'

/** Which jobs to list. */
export interface ListOptions {
  kind?: string
  queue?: string
  tenant?: string
  state?: State | State[]
  /** Whether the items of fan-outs are listed too. Default: no. */
  items?: boolean
  /** Only jobs submitted from this moment on, and only those before that one, by the clocks of their submitters. */
  since?: Date
  until?: Date
  /** Only jobs submitted before this one: the last id of the page before. */
  before?: string
  /** Default 50, at most 1000. */
  limit?: number
}

/** The definition, if it is one. */
export function known<J extends AnyJob>(job: J): J {
  if (isJob(job)) return job
  throw new HoldfastError(
    'unknown_kind',
    `Submit takes what defineJob returned, not ${JSON.stringify(job) ?? String(job)}.`,
  )
}

/** The id of a job, if the word is one. */
export function idOf(word: string): JobId {
  const id = typeof word === 'string' ? parseJobId(word) : null
  if (!id)
    throw new HoldfastError(
      'id_invalid',
      `${JSON.stringify(word)} is not a job id; one looks like 01890a5d-ac96-774b-bcce-b302099a8057.`,
    )
  return id
}

/** A text from outside as a parameter: null if none was given. Postgres can't hold every text that JavaScript can. */
export function textOf(option: string, text: string | undefined): string | null {
  if (text === undefined) return null
  if (typeof text === 'string' && !text.includes('\0')) return text
  throw new HoldfastError('option_invalid', `The option ${option} must be a text without NUL characters.`)
}

/** Throws if it is no object, before somebody looks into it. */
export function mustBeObject(name: string, given: unknown): void {
  if (typeof given === 'object' && given !== null) return
  throw new HoldfastError(
    'option_invalid',
    `The ${name} must be an object, not ${JSON.stringify(given) ?? 'undefined'}.`,
  )
}

/** Yes or no, and no word that somebody takes for it: `'yes'` would count as no. */
export function flagOf(option: string, flag: boolean): boolean {
  if (typeof flag === 'boolean') return flag
  throw new HoldfastError('option_invalid', `The option ${option} must be true or false, not ${JSON.stringify(flag)}.`)
}

/** A time from outside, if Postgres can hold it too. */
export function timeOf(option: string, time: Date): Date {
  const year = time instanceof Date ? time.getUTCFullYear() : Number.NaN
  if (year >= 0 && year <= 9999) return time
  throw new HoldfastError('option_invalid', `The option ${option} must be a valid Date of the years 0 to 9999.`)
}

/** The name of a queue, if it can be one. */
export function queueOf(name: string): string {
  if (isName(name)) return name
  throw new HoldfastError('option_invalid', `${JSON.stringify(name)} cannot be the name of a queue.`)
}

/** The size of a page, if it can be one. */
export function limitOf(limit: number, most: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= most) return limit
  throw new HoldfastError(
    'option_invalid',
    `The option limit must be a whole number from 1 to ${most}, not ${JSON.stringify(limit)}.`,
  )
}

/** A place in a sequence, such as that of the log. */
export function placeOf(option: string, place: number): number {
  if (Number.isSafeInteger(place) && place >= 0) return place
  throw new HoldfastError(
    'option_invalid',
    `The option ${option} must be a whole number from 0 on, not ${JSON.stringify(place)}.`,
  )
}

/** What to list, checked. */
export function filterOf(options: ListOptions): ListFilter {
  mustBeObject('options of list', options)
  const { kind, queue, tenant, state, items = false, since, until, before, limit = 50 } = options
  const states = state === undefined ? null : [state].flat()
  const odd = states?.find((word) => !isState(word))
  if (odd !== undefined) throw new HoldfastError('option_invalid', `${JSON.stringify(odd)} is not a state of a job.`)
  return {
    kind: textOf('kind', kind),
    queue: textOf('queue', queue),
    tenant: textOf('tenant', tenant),
    states,
    hasItems: items === true,
    before: earliest(
      before === undefined ? undefined : idOf(before),
      until === undefined ? undefined : firstIdAt(timeOf('until', until)),
    ),
    from: since === undefined ? null : firstIdAt(timeOf('since', since)),
    limit: limitOf(limit, 1000),
  }
}

function earliest(...ids: (string | undefined)[]): string | null {
  return ids.filter((id) => id !== undefined).sort()[0] ?? null
}
