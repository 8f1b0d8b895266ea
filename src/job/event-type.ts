import { allMoves, announces, type EventType as MoveEventType } from './machine.ts'

/** Events that announce no move of a job. */
const others = [
  'job.cleared',
  'job.log',
  'job.parked',
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
] as const

/** The type of an event. */
export type EventType = MoveEventType | (typeof others)[number]

/** Every type of event that there is: one for each announced move, and a few more. */
export const eventTypes: readonly EventType[] = [
  ...new Set(allMoves.map(announces).filter((type) => type !== null)),
  ...others,
]

/** The types that patterns such as `job.*`, `job.failed` or `*` mean; a pattern that means none is answered as it is. */
export function typesOf(patterns: readonly string[]): { types: EventType[] } | { unknown: string } {
  const unknown = patterns.find((pattern) => !eventTypes.some((type) => fits(pattern, type)))
  if (unknown !== undefined || patterns.length === 0) return { unknown: String(unknown ?? '') }
  return { types: eventTypes.filter((type) => patterns.some((pattern) => fits(pattern, type))) }
}

function fits(pattern: unknown, type: string): boolean {
  if (pattern === '*' || pattern === type) return true
  return typeof pattern === 'string' && pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1))
}
