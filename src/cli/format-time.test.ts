import { expect, test } from 'vitest'
import { formatAge, formatDuration, parseLength, parseMoment, parseSince } from './format-time.ts'

test('lengths of time are told in few letters', () => {
  expect([-5, 0.4, 999, 1_500, 59_000, 150_000, 9_000_000, 200_000_000].map(formatDuration)).toEqual([
    '0 ms',
    '0 ms',
    '999 ms',
    '1.5 s',
    '59 s',
    '3 min',
    '3 h',
    '2 d',
  ])
})

test('a clock that runs behind shows no time to come', () => {
  expect(formatAge(new Date(5_000), 1_000)).toBe('now')
})

test('lengths are read with their units, and seconds without', () => {
  expect(['30', '90s', '500ms', '5m', '5 min', '2h', '1d', '0.5'].map((word) => parseLength('--delay', word))).toEqual([
    30_000, 90_000, 500, 300_000, 300_000, 7_200_000, 86_400_000, 500,
  ])
  for (const word of ['', 'x', '-1', '5 weeks', '1e3'])
    expect(() => parseLength('--delay', word)).toThrow('--delay takes')
})

test('moments are read as ISO dates only', () => {
  expect(parseMoment('--run-at', '2030-01-31T08:00:00Z').getTime()).toBe(Date.UTC(2030, 0, 31, 8))
  for (const word of ['5', 'tomorrow', '2030-13-01'])
    expect(() => parseMoment('--run-at', word)).toThrow('--run-at takes')
})

test('since takes a moment, or how long ago it was', () => {
  expect(parseSince('--since', '2h', 7_200_000)).toEqual(new Date(0))
  expect(parseSince('--since', '2030-01-31T08:00:00Z')).toEqual(new Date(Date.UTC(2030, 0, 31, 8)))
  expect(() => parseSince('--since', 'noon')).toThrow('--since takes a timestamp')
})
