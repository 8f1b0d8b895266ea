import type { Group } from '../engine/groups.ts'
import { eventTypes } from '../job/event-type.ts'
import { lengthWords } from './time-words.ts'

const mostNames = 3
const ofJobs: readonly string[] = eventTypes.filter((type) => type.startsWith('job.'))

/** Types of events in few words: `all`, `job.*`, or the first of them and how many more there are. */
export function typeWords(types: readonly string[] | null): string {
  if (types === null || types.length === eventTypes.length) return 'all'
  const isAllOfJobs = ofJobs.every((type) => types.includes(type))
  const names = isAllOfJobs ? ['job.*', ...types.filter((type) => !ofJobs.includes(type))] : [...types]
  const more = names.length - mostNames
  return names.slice(0, mostNames).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/** The transaction that holds a group back, in words. */
export function holderWords({ pid, application, prepared, forMs }: NonNullable<Group['heldBy']>): string {
  const who = prepared === null ? `${application || 'an unnamed client'}, pid ${pid}` : `prepared as ${prepared}`
  return `held back by a transaction (${who}) that has been open for ${lengthWords(forMs)}`
}

/** A number of things, as `1 event` or `3 events`. */
export function countWords(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
