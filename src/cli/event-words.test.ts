import { expect, test } from 'vitest'
import { eventTypes } from '../job/event-type.ts'
import { countWords, typeWords } from './event-words.ts'

test('types of events are told in few words', () => {
  expect(typeWords(null)).toBe('all')
  expect(typeWords(eventTypes)).toBe('all')
  expect(typeWords(eventTypes.filter((type) => type.startsWith('job.')))).toBe('job.*')
  expect(typeWords(['job.failed'])).toBe('job.failed')
  expect(typeWords(['a', 'b', 'c', 'd', 'e'])).toBe('a, b, c and 2 more')
})

test('one thing is told in the singular', () => {
  expect([0, 1, 2].map((count) => countWords(count, 'event'))).toEqual(['0 events', '1 event', '2 events'])
})
