import { expect, test } from 'vitest'
import type { ApiKey } from '../engine/keys.ts'
import { KnownKeys } from './known-keys.ts'

const limits = { httpKeyTries: 20, httpKeyLookups: 4 }
const goodKey = { id: 'good' } as ApiKey

function counted() {
  const asked: string[] = []
  const keys = new KnownKeys(async (text) => {
    asked.push(text)
    return text.startsWith('good') ? goodKey : null
  }, limits)
  return { keys, asked }
}

const tried = async (keys: KnownKeys, text: string, address: string) => {
  try {
    return await keys.find(text, address)
  } catch (error) {
    return (error as { code: string }).code
  }
}

test('a flood of false keys costs a bounded number of look-ups, and good keys stay known', async () => {
  const { keys, asked } = counted()
  expect(await keys.find('good', '10.0.0.1')).toBe(goodKey)
  const told = new Map<unknown, number>()
  for (let index = 0; index < 20_000; index++) {
    const answer = await tried(keys, `false-${index}`, '10.0.0.1')
    told.set(answer, (told.get(answer) ?? 0) + 1)
  }
  expect(told.get('rate_limited')).toBeGreaterThan(15_000)
  expect(asked.length).toBeLessThan(5_000)
  expect(await keys.find('good', '10.0.0.1')).toBe(goodKey)
  expect(asked.filter((text) => text === 'good').length).toBeLessThan(5)
})

test('a false key is looked up once within two seconds, and good keys count against nobody', async () => {
  const { keys, asked } = counted()
  for (let index = 0; index < 1_000; index++) expect(await keys.find('false', '10.0.0.1')).toBe(null)
  expect(asked).toEqual(['false'])
  for (let index = 0; index < 1_000; index++) expect(await keys.find(`good-${index}`, '10.0.0.1')).toBe(goodKey)
})

test('a database that is away makes no key bad', async () => {
  let isAway = true
  const keys = new KnownKeys(async () => (isAway ? Promise.reject(new Error('away')) : goodKey), limits)
  await expect(keys.find('good', null)).rejects.toThrow('away')
  isAway = false
  expect(await keys.find('good', null)).toBe(goodKey)
})

test('an address that keeps look-ups waiting leaves half of them to others', async () => {
  const waiting: ((key: null) => void)[] = []
  const later = () => new Promise<null>((resolve) => void waiting.push(resolve))
  const keys = new KnownKeys((text) => (text === 'good' ? Promise.resolve(goodKey) : later()), limits)
  const flood = Array.from({ length: 10 }, (_, index) => tried(keys, `false-${index}`, '10.0.0.1'))
  expect(await keys.find('good', '10.0.0.2')).toBe(goodKey)
  for (const end of waiting) end(null)
  const answers = await Promise.all(flood)
  expect(answers.filter((answer) => answer === 'rate_limited')).toHaveLength(8)
})
