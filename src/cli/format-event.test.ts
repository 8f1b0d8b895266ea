import { expect, test } from 'vitest'
import { eventTypes } from '../job/event-type.ts'
import { formatCount, formatType } from './format-event.ts'

test('types of events are told in few words', () => {
  expect(formatType(null)).toBe('all')
  expect(formatType(eventTypes)).toBe('all')
  expect(formatType(eventTypes.filter((type) => type.startsWith('job.')))).toBe('job.*')
  expect(formatType(['job.failed'])).toBe('job.failed')
  expect(formatType(['a', 'b', 'c', 'd', 'e'])).toBe('a, b, c and 2 more')
})

test('one thing is told in the singular', () => {
  expect([0, 1, 2].map((count) => formatCount(count, 'event'))).toEqual(['0 events', '1 event', '2 events'])
})
