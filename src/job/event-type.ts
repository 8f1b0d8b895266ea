import { HoldfastError } from '../errors/errors.ts'
import { allMoves, announces, type EventType as MoveEventType } from './machine.ts'

/** Events that do not announce a move of a job. */
const others = [
  'job.cleared',
  'job.log',
  'job.parked',
  'job.postponed',
  'job.signalled',
  'job.reprioritized',
  'job.rescheduled',
  'barrier.expired',
  'webhook.disabled',
  'queue.paused',
  'queue.resumed',
  'key.created',
  'key.revoked',
  'endpoint.created',
  'endpoint.updated',
  'endpoint.rotated',
  'endpoint.enabled',
  'endpoint.disabled',
  'endpoint.removed',
  'endpoint.tested',
  'delivery.replayed',
  'group.forgotten',
  'group.rewound',
  'parked.replayed',
  'repair.requested',
  'schedule.set',
  'schedule.removed',
  'schedule.paused',
  'schedule.resumed',
  'schedule.triggered',
  'schedule.backfilled',
  'bulk.started',
  'bulk.stopped',
  'bulk.finished',
] as const

/** The type of an event. */
export type EventType = MoveEventType | (typeof others)[number]

/** All event types: one for each announced move, and the others. */
export const eventTypes: readonly EventType[] = [
  ...new Set(allMoves.map(announces).filter((type) => type !== null)),
  ...others,
]

/** The event types that patterns such as `job.*`, `job.failed` or `*` match. Throws event_type_unknown if one matches none. */
export function mustBeTypes(patterns: string | readonly string[]): EventType[] {
  const found = typesOf([patterns].flat())
  if ('types' in found) return found.types
  throw new HoldfastError(
    'event_type_unknown',
    `There is no event type ${JSON.stringify(found.unknown)}; docs/reference/events.md lists all of them, and job.* matches all job events.`,
  )
}

/** The event types that patterns match, or the first pattern that matches none. */
export function typesOf(patterns: readonly string[]): { types: EventType[] } | { unknown: string } {
  const unknown = patterns.find((pattern) => !eventTypes.some((type) => fits(pattern, type)))
  if (unknown !== undefined || patterns.length === 0) return { unknown: String(unknown ?? '') }
  return { types: eventTypes.filter((type) => patterns.some((pattern) => fits(pattern, type))) }
}

function fits(pattern: unknown, type: string): boolean {
  if (pattern === '*' || pattern === type) return true
  return typeof pattern === 'string' && pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1))
}
