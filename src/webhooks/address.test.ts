import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { makeAddressPolicy } from './address.ts'

const strict = makeAddressPolicy({ allow: [] })
const code = (run: () => unknown) => {
  try {
    run()
  } catch (error) {
    return error as { code: string; message: string }
  }
  return undefined
}

const refused = {
  private: ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
  loopback: ['127.0.0.1', '127.255.255.254', '::1', '0:0:0:0:0:0:0:1'],
  'link-local': ['169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'febf::1'],
  'cloud metadata': ['169.254.169.254', 'fd00:ec2::254', '168.63.129.16', '100.100.100.200', '64:ff9b::a9fe:a9fe'],
  'unique-local': ['fc00::1', 'fdff:ffff::1'],
  'carrier-grade NAT': ['100.64.0.1', '100.127.255.255'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  broadcast: ['255.255.255.255'],
  unspecified: ['0.0.0.0', '0.1.2.3', '::'],
  reserved: ['240.0.0.1', '192.0.2.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '192.0.0.1', '2001:db8::1'],
}

describe('an address that is not public is refused', () => {
  for (const [sort, addresses] of Object.entries(refused))
    test.each(addresses)(`%s is ${sort}`, (address) => {
      expect(strict.check(address)).toEqual({ kind: 'refused', sort })
    })
})

test.each([
  ['mapped', '::ffff:127.0.0.1'],
  ['mapped, in hex', '::ffff:7f00:1'],
  ['mapped, in full', '0:0:0:0:0:ffff:a9fe:a9fe'],
  ['compatible', '::127.0.0.1'],
  ['compatible, in hex', '::a00:1'],
  ['compatible, of a public address', '::8.8.8.8'],
  ['translated', '::ffff:0:127.0.0.1'],
  ['NAT64', '64:ff9b::127.0.0.1'],
  ['NAT64, in hex', '64:ff9b::a00:1'],
  ['local NAT64', '64:ff9b:1::10.0.0.1'],
  ['6to4', '2002:7f00:1::1'],
  ['6to4 of a private network', '2002:a00:1::'],
  ['Teredo', '2001:0:a00:1::1'],
  ['Teredo with a hidden client', '2001:0:4136:e378:8000:63bf:80ff:fffe'],
  ['site-local', 'fec0::1'],
  ['discard-only', '100::1'],
  ['unassigned', '4000::1'],
])('an IPv6 form that leads to no public address is refused: %s', (_, address) => {
  expect(strict.check(address).kind).toBe('refused')
})

test.each([
  '1.1.1.1',
  '8.8.8.8',
  '172.15.255.255',
  '172.32.0.1',
  '100.63.255.255',
  '2606:4700::1111',
  '::ffff:8.8.8.8',
  '64:ff9b::808:808',
])('a public address is open to all: %s', (address) => {
  expect(strict.check(address)).toEqual({ kind: 'public' })
})

test.each(['2130706433', '0x7f000001', '0177.0.0.1', '127.1', '0x7f.1', '017700000001'])(
  'an address means the same however it is written: %s',
  (address) => {
    expect(strict.check(address)).toEqual({ kind: 'refused', sort: 'loopback' })
  },
)

test.each(['', 'example.com', '1.2.3.4.5', '[::1', '::1::'])('what is no address is refused: %j', (text) => {
  expect(strict.check(text)).toEqual({ kind: 'refused', sort: 'unreadable' })
})

test('every IPv4 address is judged like its mapped form', () => {
  const octet = fc.nat({ max: 255 })
  fc.assert(
    fc.property(fc.tuple(octet, octet, octet, octet), (octets) => {
      const address = octets.join('.')
      expect(strict.check(`::ffff:${address}`)).toEqual(strict.check(address))
      expect(strict.check(`64:ff9b::${address}`)).toEqual(strict.check(address))
    }),
  )
})

test.each(['localhost', 'LOCALHOST', 'localhost.', 'localhost..', 'a.localhost', 'a.b.localhost.'])(
  'a name of this machine is refused before it is looked up: %s',
  (name) => {
    expect(strict.checkHost(name)).toEqual({ kind: 'refused', sort: 'loopback' })
  },
)

test('a name says nothing about where it leads, so it is open until its addresses are known', () => {
  for (const name of ['example.com', 'example.com.', 'localhost.example.com', 'notlocalhost'])
    expect(strict.checkHost(name)).toEqual({ kind: 'public' })
})

test('a host that is an address is judged as one', () => {
  expect(strict.checkHost('[::1]')).toEqual({ kind: 'refused', sort: 'loopback' })
  expect(strict.checkHost('10.1.2.3')).toEqual({ kind: 'refused', sort: 'private' })
  expect(strict.checkHost('10.1.2.3.')).toEqual({ kind: 'refused', sort: 'private' })
  expect(strict.checkHost('[2606:4700::1111]')).toEqual({ kind: 'public' })
})

test('the allow-list lets in ranges and single addresses, and nothing beside them', () => {
  const policy = makeAddressPolicy({ allow: ['10.0.0.0/8', '192.168.7.7', 'fd12::/16', '::1'] })
  for (const address of ['10.9.8.7', '192.168.7.7', 'fd12::9', '::1', '::ffff:10.0.0.1', '64:ff9b::10.0.0.1'])
    expect(policy.check(address), address).toEqual({ kind: 'listed' })
  for (const address of ['11.0.0.1', '8.8.8.8']) expect(policy.check(address), address).toEqual({ kind: 'public' })
  for (const address of ['192.168.7.8', 'fd13::1', '127.0.0.1', '::10.0.0.1', '2002:a00:1::'])
    expect(policy.check(address).kind, address).toBe('refused')
})

test('a range in its mapped form is the IPv4 range', () => {
  const policy = makeAddressPolicy({ allow: ['::ffff:10.0.0.0/104'] })
  expect(policy.check('10.9.8.7')).toEqual({ kind: 'listed' })
  expect(policy.check('192.168.0.1').kind).toBe('refused')
})

test('a name on the allow-list vouches for its addresses, in any letter case, with or without its dot', () => {
  const policy = makeAddressPolicy({ allow: ['Hooks.Internal.', 'bücher.example'] })
  for (const name of ['hooks.internal', 'HOOKS.internal', 'hooks.internal.', 'xn--bcher-kva.example']) {
    expect(policy.checkHost(name), name).toEqual({ kind: 'listed' })
    expect(policy.check('10.0.0.1', name), name).toEqual({ kind: 'listed' })
  }
  for (const name of ['a.hooks.internal', 'hooks.internal.example.com', undefined])
    expect(policy.check('10.0.0.1', name).kind, name).toBe('refused')
})

test('this machine can be listed by its name or by its address', () => {
  expect(makeAddressPolicy({ allow: ['localhost'] }).checkHost('localhost')).toEqual({ kind: 'listed' })
  expect(makeAddressPolicy({ allow: ['127.0.0.1'] }).checkHost('localhost')).toEqual({ kind: 'listed' })
  const policy = makeAddressPolicy({ allow: ['127.0.0.1'] })
  expect(policy.check('::1', 'localhost').kind).toBe('refused')
})

test('a metadata service is let in only if it is listed by itself', () => {
  const wide = makeAddressPolicy({ allow: ['169.254.0.0/16', 'fc00::/7', '0.0.0.0/0', '::/0', 'hooks.internal'] })
  for (const address of ['169.254.169.254', 'fd00:ec2::254', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe'])
    expect(wide.check(address, 'hooks.internal'), address).toEqual({ kind: 'refused', sort: 'cloud metadata' })
  expect(wide.check('169.254.1.1')).toEqual({ kind: 'listed' })
  const named = makeAddressPolicy({ allow: ['169.254.169.254'] })
  expect(named.check('169.254.169.254')).toEqual({ kind: 'listed' })
})

test.each([
  '',
  ' ',
  '10.0.0.0/33',
  '10.0.0.0/-1',
  '10.0.0.0/',
  '10.0.0.0/8/8',
  'fc00::/129',
  '::ffff:10.0.0.0/8',
  '10.0.0',
  '010.0.0.1',
  '0x7f000001',
  '256.0.0.1',
  'fe80::1%eth0',
  '[::1]',
  'localhost:3000',
  'http://localhost',
  'host/8',
  '*.example.com',
  'a..b',
  '-a.example',
  'a b',
])('a malformed entry of the allow-list is a wrong setting: %j', (entry) => {
  const error = code(() => makeAddressPolicy({ allow: [entry] }))
  expect(error?.code).toBe('config_invalid')
  expect(error?.message).toContain(JSON.stringify(entry))
})

test('a range that begins elsewhere is named as it should be written', () => {
  const error = code(() => makeAddressPolicy({ allow: ['10.1.2.3/8'] }))
  expect(error?.code).toBe('config_invalid')
  expect(error?.message).toContain('write 10.0.0.0/8')
})
