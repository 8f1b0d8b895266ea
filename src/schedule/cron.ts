/**
 * Cron patterns. croner expands a pattern; this file decides which instant a local time is, because croner repeats some slots of a repeated
 * hour and drops some that fall into a gap. The rule is that of Vixie cron:
 *
 * - A pattern that names hours runs at each local time once: in a gap at the first valid instant, in a repeated hour the first time.
 * - A pattern for every hour runs by the clock: nothing in a gap, and in both of two repeated hours. An hourly job stays hourly.
 */
import { Cron } from 'croner'
import { messageOf } from '../errors/errors.ts'
import { endOfGap, instantsOf, nextSetBack, offsetAt, wallAt } from './zone.ts'

/** A pattern in a time zone. */
export interface CronPattern {
  /** The first slot after an instant; null if there is none. */
  next(afterMs: number): number | null
}

const nicknames: Record<string, string> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

const longestPattern = 200
/** How many local times in a row may be no slots, because they are in a gap or repeated. The most patterns have is one per second. */
const mostSteps = 100_000

/** What is wrong with a pattern, as the end of a sentence; undefined if nothing is. */
export function patternProblem(pattern: unknown): string | undefined {
  if (typeof pattern !== 'string') return 'must be a string such as "0 3 * * *"'
  if (pattern.length > longestPattern) return `must have at most ${longestPattern} characters`
  const fields = fieldsOf(pattern)
  if (fields.length !== 5 && fields.length !== 6)
    return `must have 5 fields (minute hour day month weekday), or 6 with seconds first, or be one of ${Object.keys(nicknames).join(', ')}`
  try {
    return expand(pattern) ? undefined : 'never fires'
  } catch (error) {
    return `cannot be read: ${messageOf(error).replace(/^CronPattern: /, '')}`
  }
}

/** Whether a pattern has at least one slot, in any year to come. */
function expand(pattern: string): boolean {
  return wallsOf(pattern).nextRun(new Date(Date.UTC(2024, 0, 1))) !== null
}

function fieldsOf(pattern: string): string[] {
  return (nicknames[pattern.trim().toLowerCase()] ?? pattern).trim().split(/\s+/)
}

const expanded = new Map<string, Cron>()

/** The local times of a pattern, as if they were UTC. Reading a pattern costs more than a slot, and many schedules share one. */
function wallsOf(pattern: string): Cron {
  const known = expanded.get(pattern)
  if (known) return known
  const made = new Cron(fieldsOf(pattern).join(' '), { timezone: 'UTC', paused: true })
  if (expanded.size > 5_000) expanded.clear()
  expanded.set(pattern, made)
  return made
}

const patterns = new Map<string, CronPattern>()

/** A pattern that was checked. */
export function cronPattern(pattern: string, zone: string): CronPattern {
  const key = `${zone} ${pattern}`
  const known = patterns.get(key)
  if (known) return known
  const made = { next: remembered(nextOf(pattern, zone)) }
  if (patterns.size > 5_000) patterns.clear()
  patterns.set(key, made)
  return made
}

function nextOf(pattern: string, zone: string): CronPattern['next'] {
  const walls = wallsOf(pattern)
  const nextWall = (wall: number) => walls.nextRun(new Date(wall))?.getTime() ?? null
  if (zone === 'UTC') return nextWall
  const isHourly = fieldsOf(pattern).at(-4) === '*'
  return (afterMs) => (isHourly ? nextByClock : nextByHours)({ nextWall, zone, afterMs })
}

/** Thousands of schedules may have the same pattern and come due at the same second: then the next slot is computed once. */
function remembered(next: CronPattern['next']): CronPattern['next'] {
  let last: { afterMs: number; found: number | null } | undefined
  return (afterMs) => {
    if (last?.afterMs !== afterMs) last = { afterMs, found: next(afterMs) }
    return last.found
  }
}

interface Search {
  nextWall: (wall: number) => number | null
  zone: string
  afterMs: number
}

/** The next slot of a pattern that names hours: each local time once a day. */
function nextByHours({ nextWall, zone, afterMs }: Search): number | null {
  let wall = nextWall(wallAt(zone, afterMs))
  for (let steps = 0; wall !== null && steps < mostSteps; steps++) {
    const ms = instantsOf(zone, wall)[0] ?? endOfGap(zone, wall)
    // behind us: the hour is repeated, and this was the first time
    if (ms > afterMs) return ms
    wall = nextWall(wall)
  }
  return null
}

/** The next slot of a pattern for every hour, as the clock shows it. */
function nextByClock({ nextWall, zone, afterMs }: Search): number | null {
  const found = nextShown({ nextWall, zone, afterMs })
  const backAt = nextSetBack(zone, afterMs)
  if (backAt === null) return found
  // the clock shows the same hour once more; what is shown then comes before what follows it
  const wall = nextWall(wallAt(zone, backAt) - 1)
  const again = wall === null ? null : wall - offsetAt(zone, backAt)
  return found !== null && again !== null ? Math.min(found, again) : (found ?? again)
}

function nextShown({ nextWall, zone, afterMs }: Search): number | null {
  let wall = nextWall(wallAt(zone, afterMs))
  for (let steps = 0; wall !== null && steps < mostSteps; steps++) {
    const ms = instantsOf(zone, wall).find((one) => one > afterMs)
    if (ms !== undefined) return ms
    wall = nextWall(wall)
  }
  return null
}
