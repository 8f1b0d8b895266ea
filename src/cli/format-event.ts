import type { Group } from '../events/group.ts'
import { eventTypes } from '../job/event-type.ts'
import { formatDuration } from './format-time.ts'

const mostNames = 3
const ofJobs: readonly string[] = eventTypes.filter((type) => type.startsWith('job.'))

/** Event types in short: `all`, `job.*`, or the first one and how many more there are. */
export function formatType(types: readonly string[] | null): string {
  if (types === null || types.length === eventTypes.length) return 'all'
  const isAllOfJobs = ofJobs.every((type) => types.includes(type))
  const names = isAllOfJobs ? ['job.*', ...types.filter((type) => !ofJobs.includes(type))] : [...types]
  const more = names.length - mostNames
  return names.slice(0, mostNames).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/** The transaction that holds a group back, in words. */
export function formatHolder({ pid, application, prepared, forMs }: NonNullable<Group['heldBy']>): string {
  const who = prepared === null ? `${application || 'an unnamed client'}, pid ${pid}` : `prepared as ${prepared}`
  return `held back by a transaction (${who}) that has been open for ${formatDuration(forMs)}`
}

/** A count with its noun, as in `1 event` or `3 events`. */
export function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
