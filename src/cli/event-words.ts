import { eventTypes } from '../job/event-type.ts'

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

/** A number of things, as `1 event` or `3 events`. */
export function countWords(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
