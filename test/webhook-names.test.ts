import { describe, expect, test } from 'vitest'
import { checkServers, UnresolvedNameError } from '#holdfast/webhooks/resolver'
import { until } from './until.ts'
import { nameServer, resolverAt } from './webhooks/name-server.ts'

const nobodyHere = async () => []

describe('a name is looked up', () => {
  test('in the hosts file first, then at the name server', async () => {
    await using names = await nameServer({ 'hooks.test': '192.0.2.1', 'db.test': '192.0.2.2' })
    const findHost = async (name: string) => (name === 'db.test' ? ['10.0.0.5'] : [])
    const { resolve } = resolverAt(names, { findHost })
    expect(await resolve('hooks.test', 'acme')).toEqual(['192.0.2.1'])
    expect(await resolve('db.test', 'acme')).toEqual(['10.0.0.5'])
    expect(names.asked).not.toContain('db.test')
  })

  test('for localhost without any name server', async () => {
    await using names = await nameServer({})
    const found = await resolverAt(names).resolve('localhost', 'acme')
    expect(found).toContain('127.0.0.1')
    expect(names.asked).toEqual([])
  })

  test('as it stands, then in the search domains, unless it ends with a dot', async () => {
    await using names = await nameServer({ 'hooks.corp.test': '192.0.2.1', 'hooks.test': '192.0.2.2' })
    const { resolve } = resolverAt(names, { findHost: nobodyHere, search: ['lab.test', 'corp.test', 'test'] })
    expect(await resolve('hooks', 'acme')).toEqual(['192.0.2.1'])
    expect([...new Set(names.asked)]).toEqual(['hooks', 'hooks.lab.test', 'hooks.corp.test'])
    await expect(resolve('hooks.', 'acme')).rejects.toMatchObject({ isUnanswered: false })
  })

  test.each(['nothing.test', 'a..b', 'x'.repeat(70)])('and %s has no address', async (name) => {
    await using names = await nameServer({})
    const { resolve } = resolverAt(names, { findHost: nobodyHere })
    await expect(resolve(name, 'acme')).rejects.toMatchObject({ name: 'UnresolvedNameError', isUnanswered: false })
  })
})

describe('a name server that never answers', () => {
  test('is given up at the deadline', async () => {
    await using names = await nameServer({})
    const { resolve } = resolverAt(names, { lookupMs: 200 })
    await expect(resolve('a.silent.test', 'acme')).rejects.toMatchObject({ isUnanswered: true })
  })

  test('holds up a tenant only, and only so many of its look-ups', async () => {
    await using names = await nameServer({ 'hooks.test': '192.0.2.1' })
    // without the hosts file, whose reads end in any order, turns are taken in the order of the calls
    const resolver = resolverAt(names, { findHost: nobodyHere, lookupMs: 60_000, mostPerTenant: 3 })
    const stuck = Array.from({ length: 50 }, (_, n) => resolver.resolve(`n${n}.silent.test`, 'hostile'))
    const told = Promise.allSettled(stuck)
    await until(() => new Set(names.asked).size >= 3, 'three names were asked for')
    const own = resolver.resolve('hooks.test', 'hostile').catch((error) => error)
    expect(await resolver.resolve('hooks.test', 'neighbor')).toEqual(['192.0.2.1'])
    expect(new Set(names.asked)).toEqual(new Set(['n0.silent.test', 'n1.silent.test', 'n2.silent.test', 'hooks.test']))
    resolver.close()
    expect(await own).toBeInstanceOf(UnresolvedNameError)
    expect((await told).every(({ status }) => status === 'rejected')).toBe(true)
  })

  test('is asked once for a name that many want at the same time', async () => {
    await using names = await nameServer({ 'hooks.test': '192.0.2.1' })
    const { resolve } = resolverAt(names)
    const found = await Promise.all(Array.from({ length: 20 }, () => resolve('hooks.test', 'acme')))
    expect(found).toEqual(Array(20).fill(['192.0.2.1']))
    // one question for IPv4 and one for IPv6
    expect(names.asked).toHaveLength(2)
  })
})

test.each(['10.0.0.53', '10.0.0.53:5353', '::1', '[fd00::53]:53'])('%s can be a name server', (server) => {
  expect(checkServers([server])).toEqual([server])
})

test.each(['dns.test', '10.0.0', '10.0.0.53:0', '10.0.0.53:99999', '[10.0.0.1]:53', ''])(
  '%s cannot be a name server',
  (server) => {
    expect(() => checkServers([server])).toThrow(/webhookNameServers has a malformed entry/)
  },
)
