import fc from 'fast-check'
import { expect, test } from 'vitest'
import { patternProblem } from './cron.ts'
import { slotsOf, type Timing } from './slots.ts'
import { isZone, wallAt } from './zone.ts'

const timing = (given: Partial<Timing>): Timing => ({
  cron: null,
  everyMs: null,
  tz: 'UTC',
  startsAt: null,
  endsAt: null,
  ...given,
})

/** The next slots after a moment, as text. */
function after(from: string, count: number, given: Partial<Timing>): string[] {
  const { next } = slotsOf(timing(given))
  const found: string[] = []
  for (let at = next(Date.parse(from)); at !== null && found.length < count; at = next(at))
    found.push(new Date(at).toISOString().replace('.000Z', 'Z'))
  return found
}

const berlin = 'Europe/Berlin'

test('a slot in a gap runs at the first valid instant', () => {
  expect(after('2026-03-28T12:00Z', 2, { cron: '30 2 * * *', tz: berlin })).toEqual([
    '2026-03-29T01:00:00Z',
    '2026-03-30T00:30:00Z',
  ])
  expect(after('2026-03-28T12:00Z', 2, { cron: '0 2,3 * * *', tz: berlin })).toEqual([
    '2026-03-29T01:00:00Z',
    '2026-03-30T00:00:00Z',
  ])
  expect(after('2026-03-28T12:00Z', 2, { cron: '*/20 2 * * *', tz: berlin })).toEqual([
    '2026-03-29T01:00:00Z',
    '2026-03-30T00:00:00Z',
  ])
})

test('a gap of half an hour, and a day that a zone skipped, run at the first valid instant', () => {
  expect(after('2026-10-03T12:00Z', 1, { cron: '15 2 * * *', tz: 'Australia/Lord_Howe' })).toEqual([
    '2026-10-03T15:30:00Z',
  ])
  expect(after('2011-12-29T23:00Z', 2, { cron: '0 12 * * *', tz: 'Pacific/Apia' })).toEqual([
    '2011-12-30T10:00:00Z',
    '2011-12-30T22:00:00Z',
  ])
})

test('a repeated hour runs once', () => {
  expect(after('2026-10-24T12:00Z', 2, { cron: '30 2 * * *', tz: berlin })).toEqual([
    '2026-10-25T00:30:00Z',
    '2026-10-26T01:30:00Z',
  ])
  expect(after('2026-10-24T12:00Z', 3, { cron: '*/30 2 * * *', tz: berlin })).toEqual([
    '2026-10-25T00:00:00Z',
    '2026-10-25T00:30:00Z',
    '2026-10-26T01:00:00Z',
  ])
})

test('a pattern for every hour stays hourly when the clocks change', () => {
  expect(after('2026-03-28T23:45Z', 3, { cron: '30 * * * *', tz: berlin })).toEqual([
    '2026-03-29T00:30:00Z',
    '2026-03-29T01:30:00Z',
    '2026-03-29T02:30:00Z',
  ])
  expect(after('2026-10-24T23:45Z', 3, { cron: '30 * * * *', tz: berlin })).toEqual([
    '2026-10-25T00:30:00Z',
    '2026-10-25T01:30:00Z',
    '2026-10-25T02:30:00Z',
  ])
})

const zones = [
  'UTC',
  berlin,
  'America/New_York',
  'Australia/Lord_Howe',
  'Asia/Kathmandu',
  'Africa/Casablanca',
  'America/St_Johns',
  'Pacific/Chatham',
  'America/Santiago',
]
/** When clocks change somewhere; half of the moments are within three hours of one of them. */
const changes = [
  '2026-03-29T01:00Z',
  '2026-10-25T01:00Z',
  '2026-11-01T06:00Z',
  '2026-04-04T15:00Z',
  '2026-10-03T15:30Z',
]
const anyMoment = fc.oneof(
  fc.integer({ min: Date.UTC(2024, 0), max: Date.UTC(2030, 0) }),
  fc
    .tuple(fc.constantFrom(...changes), fc.integer({ min: -10_800_000, max: 10_800_000 }))
    .map(([change, ms]) => Date.parse(change) + ms),
)

test('a daily pattern runs once on every local day of every zone, never before its time, at most a gap after it', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...zones),
      fc.integer({ min: 0, max: 23 }),
      fc.integer({ min: 0, max: 59 }),
      anyMoment,
      (tz, hour, minute, from) => {
        const { next } = slotsOf(timing({ cron: `${minute} ${hour} * * *`, tz }))
        let at = next(from) as number
        for (let days = 0; days < 10; days++) {
          const then = next(at) as number
          const [today, tomorrow] = [at, then].map((ms) => Math.floor(wallAt(tz, ms) / 86_400_000)) as [number, number]
          expect(tomorrow).toBe(today + 1)
          const lateMs = wallAt(tz, then) - (tomorrow * 86_400_000 + (hour * 60 + minute) * 60_000)
          expect(lateMs).toBeGreaterThanOrEqual(0)
          expect(lateMs).toBeLessThanOrEqual(3_600_000)
          at = then
        }
      },
    ),
    { numRuns: 300 },
  )
})

test('slots only grow, wherever the search begins', () => {
  const pattern = fc.tuple(
    fc.constantFrom('*', '0', '30', '*/7', '15,45'),
    fc.constantFrom('*', '2', '*/3', '1-3', '0,23'),
  )
  fc.assert(
    fc.property(fc.constantFrom(...zones), pattern, anyMoment, (tz, [minute, hour], from) => {
      const { next } = slotsOf(timing({ cron: `${minute} ${hour} * * *`, tz }))
      const first = next(from) as number
      expect(first).toBeGreaterThan(from)
      // no slot lies between the start and the first one, so a search from just before it finds the same
      expect(next(first - 1)).toBe(first)
      expect(next(Math.floor((from + first) / 2))).toBe(first)
    }),
    { numRuns: 500 },
  )
})

test('a minutely pattern runs every minute of every zone, whatever its clocks do', () => {
  fc.assert(
    fc.property(fc.constantFrom(...zones), anyMoment, (tz, from) => {
      const { next } = slotsOf(timing({ cron: '* * * * *', tz }))
      expect((next(next(from) as number) as number) - (next(from) as number)).toBe(60_000)
    }),
    { numRuns: 500 },
  )
})

test('intervals are counted from the start, or from 1970', () => {
  expect(after('2026-01-01T00:03Z', 2, { everyMs: 600_000 })).toEqual(['2026-01-01T00:10:00Z', '2026-01-01T00:20:00Z'])
  const startsAt = new Date('2026-01-01T00:05Z')
  expect(after('2026-01-01T00:03Z', 2, { everyMs: 600_000, startsAt })).toEqual([
    '2026-01-01T00:05:00Z',
    '2026-01-01T00:15:00Z',
  ])
})

test('a schedule has no slots before its start or after its end', () => {
  const [startsAt, endsAt] = [new Date('2026-06-01T00:00Z'), new Date('2026-06-02T12:00Z')]
  expect(after('2026-01-01T00:00Z', 9, { cron: '0 12 * * *', startsAt, endsAt })).toEqual([
    '2026-06-01T12:00:00Z',
    '2026-06-02T12:00:00Z',
  ])
})

test('the slots of a range are counted up to a limit, and the last of them is found in any case', () => {
  const [from, to] = [Date.parse('2026-01-01T00:00Z'), Date.parse('2026-03-01T00:00:30Z')]
  const last = Date.parse('2026-03-01T00:00Z')
  expect(slotsOf(timing({ cron: '* * * * *' })).between(from, to, 100)).toEqual({ count: 100, lastMs: last })
  expect(slotsOf(timing({ everyMs: 60_000 })).between(from, to, 1_000_000)).toEqual({ count: 84_961, lastMs: last })
  expect(slotsOf(timing({ cron: '0 0 * * 1' })).between(from, to, 100)).toEqual({
    count: 8,
    lastMs: Date.parse('2026-02-23T00:00Z'),
  })
  expect(slotsOf(timing({ cron: '0 0 1 1 *' })).between(from + 1, to, 100)).toEqual({ count: 0, lastMs: null })
})

test('patterns that never fire or cannot be read are refused, at once', () => {
  const startedMs = performance.now()
  for (const pattern of ['0 0 30 2 *', '0 0 31 4,6,9,11 *']) expect(patternProblem(pattern)).toBe('never fires')
  for (const pattern of ['', 'nightly', '61 * * * *', '* * * * * * *', '@reboot', '* *', 'x'.repeat(300), 5, null])
    expect(patternProblem(pattern)).toMatch(/^(must|cannot)/)
  for (const pattern of ['0 3 * * *', '@daily', '*/5 * * * * *', '0 0 29 2 *', '0 0 L * *', '0 9 * * MON-FRI'])
    expect(patternProblem(pattern)).toBe(undefined)
  expect(performance.now() - startedMs).toBeLessThan(2_000)
})

test('zones are known by their IANA names', () => {
  expect([berlin, 'UTC', 'Mars/Olympus', '', 'Berlin'].map(isZone)).toEqual([true, true, false, false, false])
})
