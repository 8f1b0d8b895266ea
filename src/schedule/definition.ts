import { createHash } from 'node:crypto'
import { dayMs, durationMs } from '../errors/duration.ts'
import { HoldfastError } from '../errors/errors.ts'
import { type AnyJob, isName, isPriority } from '../job/define.ts'
import { nameRule } from '../job/names.ts'
import { type MissedMode, missedModes, type OverlapMode, overlapModes, type ScheduleTiming } from '../job/schedule.ts'
import { patternProblem } from './cron.ts'
import { slotsOf, type Timing } from './slots.ts'
import { isZone } from './zone.ts'

/** A checked schedule, as it is stored. */
export interface Definition extends Timing {
  tenant: string
  name: string
  kind: string
  queue: string
  kindPriority: number
  crashBudget: number
  priority: number | null
  /** What the limit of the kind counts its jobs by; null if that has no key. */
  limitKey: string | null
  /** JSON. */
  input: string
  jitterMs: number
  missed: MissedMode
  missedWindowMs: number
  missedCap: number
  overlap: OverlapMode
}

/** How a schedule is given: its timing, and the priority of its jobs. */
export type GivenTiming = ScheduleTiming & { priority?: number }

const shortestMs = 1_000
const longestMs = 3_660 * dayMs
const mostCap = 1_000

/** Checks a timing. Throws schedule_invalid, with what to do about it. */
export function checkTiming(given: GivenTiming) {
  const { cron, every, tz = 'UTC', startsAt, endsAt, missed = 'latest', missedCap = 100, overlap = 'skip' } = given
  if ((cron === undefined) === (every === undefined)) invalid('needs either `cron` or `every`, and not both')
  const problem = cron === undefined ? undefined : patternProblem(cron)
  if (problem) invalid(`has the pattern ${show(cron)}, which ${problem}`)
  if (typeof tz !== 'string' || !isZone(tz))
    invalid(`has the time zone ${show(tz)}, which is unknown; use an IANA name such as Europe/Berlin`)
  if (!missedModes.some((mode) => mode === missed)) invalid(`has missed ${show(missed)}; use ${listed(missedModes)}`)
  if (!overlapModes.some((mode) => mode === overlap))
    invalid(`has overlap ${show(overlap)}; use ${listed(overlapModes)}`)
  if (!(Number.isInteger(missedCap) && missedCap >= 1 && missedCap <= mostCap))
    invalid(`has missedCap ${show(missedCap)}; use a whole number from 1 to ${mostCap}`)
  if (given.priority !== undefined && !isPriority(given.priority))
    invalid(`has priority ${show(given.priority)}; use 1 (first) to 4 (last)`)
  const timing = {
    cron: cron ?? null,
    everyMs: every === undefined ? null : lengthOf('every', every, shortestMs),
    tz,
    startsAt: momentOf('startsAt', startsAt),
    endsAt: momentOf('endsAt', endsAt),
  }
  return {
    ...timing,
    priority: given.priority ?? null,
    jitterMs: lengthOf('jitter', given.jitter ?? 0, 0),
    missed,
    missedWindowMs: lengthOf('missedWindow', given.missedWindow ?? dayMs, 0),
    missedCap,
    overlap,
  }
}

/** The first slot after a moment. Throws schedule_invalid if there is none. */
export function firstSlot(timing: Timing, nowMs: number): Date {
  const ms = slotsOf(timing).next(nowMs)
  return ms === null
    ? invalid(`has no slot after ${new Date(nowMs).toISOString()}; check startsAt and endsAt`)
    : new Date(ms)
}

/** The name of a schedule; throws if it is invalid. */
export function scheduleName(name: unknown): string {
  return isName(name) ? name : invalid(`cannot be named ${show(name)}; ${nameRule}`)
}

/** The tenant of a schedule; throws if it is invalid. */
export function scheduleTenant(tenant: string | undefined): string {
  return tenant === undefined || isName(tenant)
    ? (tenant ?? 'default')
    : invalid(`cannot belong to the tenant ${show(tenant)}; ${nameRule}`)
}

/** The parts of a definition that come from its kind. */
export function kindParts({ kind, queue, priority, crashBudget }: AnyJob, standardBudget: number) {
  return { kind, queue, kindPriority: priority, crashBudget: crashBudget ?? standardBudget }
}

/** A checksum of everything that a declaration says. Settings and defaults are part of it. */
export function checksumOf(definition: Definition): string {
  const { queue: _, kindPriority: __, crashBudget: ___, ...said } = definition
  const ordered = Object.entries(said).sort(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256').update(JSON.stringify(ordered)).digest('base64url').slice(0, 22)
}

function lengthOf(option: string, given: unknown, leastMs: number): number {
  const ms = durationMs(given)
  if (ms !== undefined && ms >= leastMs && ms <= longestMs) return ms
  return invalid(
    `has ${option} ${show(given)}; use milliseconds or a string such as "10m", ${leastMs > 0 ? 'at least a second and ' : ''}at most ten years`,
  )
}

function momentOf(option: string, at: Date | undefined): Date | null {
  if (at === undefined) return null
  const year = at instanceof Date ? at.getUTCFullYear() : Number.NaN
  return year >= 1970 && year <= 9999 ? at : invalid(`has ${option} ${show(at)}; use a Date between 1970 and 9999`)
}

function listed(words: readonly string[]): string {
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}

function show(value: unknown): string {
  return JSON.stringify(value) ?? String(value)
}

/** Throws schedule_invalid with a sentence that begins with the schedule. */
export function invalid(problem: string): never {
  throw new HoldfastError('schedule_invalid', `The schedule ${problem}.`)
}
