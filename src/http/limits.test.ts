import { expect, test } from 'vitest'
import type { Caller } from './caller.ts'
import { makeLimits } from './limits.ts'

const keyOf = (keyId: string, tenant: string | null): Caller => ({ keyId, tenant, scopes: ['read'] })
const [first, second] = [keyOf('1', 'acme'), keyOf('2', 'acme')]
const neighbor = keyOf('3', 'globex')
const operators = [keyOf('4', null), keyOf('5', null)] as const

test('a tenant gets no more waits by making more keys', () => {
  const limits = makeLimits({ perSecond: 10, waits: 2, bodyBytes: 1 })
  const done = limits.wait(first)
  limits.wait(second)
  expect(() => limits.wait(second)).toThrow(expect.objectContaining({ code: 'waits_exhausted' }))
  for (const other of [neighbor, ...operators]) limits.wait(other)
  done()
  done()
  limits.wait(second)
  expect(() => limits.wait(first)).toThrow(expect.objectContaining({ code: 'waits_exhausted' }))
})

test('a tenant gets no more requests a second by making more keys', () => {
  // slow enough that nothing comes back while this runs
  const limits = makeLimits({ perSecond: 0.5, waits: 1, bodyBytes: 1 })
  limits.take(first)
  expect(() => limits.take(second)).toThrow(expect.objectContaining({ code: 'rate_limited' }))
  for (const other of [neighbor, ...operators]) limits.take(other)
})

test('requests with large bodies are counted while they are under way', () => {
  const limits = makeLimits({ perSecond: 10, waits: 1, bodyBytes: 100 })
  const releases = [limits.holdBody(first, 60), limits.holdBody(neighbor, 60)]
  expect(limits.large()).toBe(2)
  expect(() => limits.holdBody(second, 60)).toThrow(expect.objectContaining({ code: 'rate_limited' }))
  for (const release of releases) release()
  expect(limits.large()).toBe(0)
})
