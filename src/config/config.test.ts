import { expect, test } from 'vitest'
import { readConfig } from './config.ts'
import { envNameOf, flagOf, settingNames, settingOf, settings } from './settings.ts'

test('without anything given, every setting has its default', () => {
  const config = readConfig({}, {})
  for (const name of settingNames) expect(config[name]).toEqual(settings[name].default)
})

test('what the caller gives wins over the environment, which wins over the default', () => {
  const env = { HOLDFAST_CONCURRENCY: '7', HOLDFAST_POLL_MS: '300' }
  expect(readConfig({ concurrency: 3 }, env)).toMatchObject({ concurrency: 3, pollMs: 300, batchSize: 1000 })
})

test('an empty environment variable is none', () => {
  expect(readConfig({}, { HOLDFAST_CONCURRENCY: '' }).concurrency).toBe(settings.concurrency.default)
})

test('lists, flags and numbers may be given as text', () => {
  const env = { HOLDFAST_QUEUES: 'a, b,,c ', HOLDFAST_POOLED: '1', HOLDFAST_LEASE_MS: ' 20000 ' }
  expect(readConfig({}, env)).toMatchObject({ queues: ['a', 'b', 'c'], pooled: true, leaseMs: 20_000 })
})

test('the environment name and the flag of a setting follow from its name', () => {
  expect([envNameOf('leaseMs'), flagOf('leaseMs')]).toEqual(['HOLDFAST_LEASE_MS', '--lease-ms'])
  expect(new Set(settingNames.map(envNameOf)).size).toBe(settingNames.length)
})

const numbers = settingNames.filter((name) => settingOf(name).type === 'whole')

test.for(numbers)('%s refuses what is no whole number in its range, and says so by name', (name) => {
  const { min, max } = settings[name] as { min: number; max: number }
  for (const bad of [min - 1, max + 1, 1.5, Number.NaN, 'soon', '1e3', '10ms', '-'])
    expect(() => readConfig({ [name]: bad }, {}), String(bad)).toThrow(
      expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining(name) }),
    )
})

test('a garbled value from the environment is refused with the name of the variable', () => {
  expect(() => readConfig({}, { HOLDFAST_LEASE_MS: '15s' })).toThrow(/leaseMs.*HOLDFAST_LEASE_MS.*"15s"/)
  expect(() => readConfig({}, { HOLDFAST_POOLED: 'maybe' })).toThrow(/pooled.*true or false/)
})

const badRelations: [what: string, given: Record<string, number>, names: string[]][] = [
  [
    'a heartbeat as long as the time after which a session is lost',
    { heartbeatMs: 3_000 },
    ['heartbeatMs', 'lostAfterMs'],
  ],
  ['a margin that leaves no time between two heartbeats', { abortMarginMs: 2_500 }, ['heartbeatMs', 'abortMarginMs']],
  ['a lease as short as the time after which a session is lost', { leaseMs: 3_000 }, ['lostAfterMs', 'leaseMs']],
  ['a leader that renews as rarely as its lease lasts', { leaderRenewMs: 2_000 }, ['leaderRenewMs', 'leaderLeaseMs']],
  ['a sweep as rare as the leader lease is long', { sweepMs: 2_000 }, ['sweepMs', 'leaderLeaseMs']],
  [
    'a first backoff above the longest',
    { backoffBaseMs: 10_000, backoffMaxMs: 5_000 },
    ['backoffBaseMs', 'backoffMaxMs'],
  ],
]

test.for(badRelations)('%s is refused with a sentence that names both settings', ([, given, names]) => {
  for (const name of names)
    expect(() => readConfig(given, {})).toThrow(
      expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining(name) }),
    )
})

test('an unknown log level is refused', () => {
  expect(() => readConfig({ logLevel: 'loud' }, {})).toThrow(/logLevel/)
})

const durations = settingNames.filter((name) => settingOf(name).type === 'duration')

test.for(durations)('%s takes milliseconds or a text with a unit, and refuses what is neither', (name) => {
  expect(readConfig({ [name]: '36h' }, {})[name]).toBe(129_600_000)
  expect(readConfig({}, { [envNameOf(name)]: '7d' })[name]).toBe(604_800_000)
  expect(readConfig({ [name]: 0 }, { [envNameOf(name)]: '5' })[name]).toBe(0)
  for (const bad of [-1, 1.5, Number.NaN, 'soon', '1e3', '-1d', '20000d', '1 month'])
    expect(() => readConfig({ [name]: bad }, {}), String(bad)).toThrow(
      expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining(name) }),
    )
})
