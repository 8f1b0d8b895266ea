import { expect, test } from 'vitest'
import type { ApiKey } from '../keys/keys.ts'
import { KnownKeys } from './known-keys.ts'

const limits = { httpKeyTries: 20, httpKeyLookups: 100 }
const goodKey = { id: 'good' } as ApiKey
const answerTo = (text: string) => (text.startsWith('good') ? goodKey : null)

function counted() {
  const batches: string[][] = []
  const keys = new KnownKeys(async (texts) => {
    batches.push([...texts])
    return texts.map(answerTo)
  }, limits)
  return { keys, batches, asked: () => batches.flat() }
}

const tried = async (keys: KnownKeys, text: string, address: string) => {
  try {
    return await keys.find(text, address)
  } catch (error) {
    return (error as { code: string }).code
  }
}

/** So many at once. */
const all = <T>(count: number, each: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => each(index)))

test('a flood of false keys costs a bounded number of look-ups, and good keys stay known', async () => {
  const { keys, asked } = counted()
  expect(await keys.find('good', '10.0.0.1')).toBe(goodKey)
  let refused = 0
  for (let turn = 0; turn < 200; turn++) {
    const told = await all(100, (index) => tried(keys, `false-${turn}-${index}`, '10.0.0.1'))
    refused += told.filter((answer) => answer === 'rate_limited').length
  }
  expect(refused).toBeGreaterThan(15_000)
  expect(asked().length).toBeLessThan(5_000)
  expect(await keys.find('good', '10.0.0.1')).toBe(goodKey)
  expect(asked().filter((text) => text === 'good').length).toBeLessThan(5)
})

test('keys that come at the same time are looked up together, from however many addresses', async () => {
  const { keys, batches } = counted()
  const found = await all(90, (index) => keys.find(index === 80 ? 'good' : `false-${index}`, `10.0.0.${index}`))
  expect(found.filter((key) => key === goodKey)).toHaveLength(1)
  expect(found[80]).toBe(goodKey)
  expect(batches.map((batch) => batch.length)).toEqual([1, 89])
})

test('a false key is looked up once within two seconds, and good keys count against nobody', async () => {
  const { keys, asked } = counted()
  for (let index = 0; index < 1_000; index++) expect(await keys.find('false', '10.0.0.1')).toBe(null)
  expect(asked()).toEqual(['false'])
  for (let turn = 0; turn < 20; turn++) {
    const found = await all(50, (index) => keys.find(`good-${turn}-${index}`, '10.0.0.1'))
    expect(found.every((key) => key === goodKey)).toBe(true)
  }
})

test('a database that is away makes no key bad', async () => {
  let isAway = true
  const keys = new KnownKeys(async () => (isAway ? Promise.reject(new Error('away')) : [goodKey]), limits)
  await expect(keys.find('good', null)).rejects.toThrow('away')
  isAway = false
  expect(await keys.find('good', null)).toBe(goodKey)
})

test('an address that keeps look-ups waiting leaves half of them to others', async () => {
  let answer: () => void = () => {}
  const held = new Promise<void>((resolve) => {
    answer = resolve
  })
  const keys = new KnownKeys(async (texts) => held.then(() => texts.map(answerTo)), limits)
  const flood = all(110, (index) => tried(keys, `false-${index}`, '10.0.0.1'))
  const good = keys.find('good', '10.0.0.2')
  answer()
  expect(await good).toBe(goodKey)
  expect((await flood).filter((told) => told === 'rate_limited')).toHaveLength(60)
})
