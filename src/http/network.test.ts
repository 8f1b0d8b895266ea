import { expect, test } from 'vitest'
import { networkOf } from './network.ts'

test('addresses of one IPv6 network count as one', () => {
  expect(networkOf('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64')
  expect(networkOf('2001:db8::1')).toBe('2001:db8:0:0::/64')
  expect(networkOf('::ffff:10.0.0.1')).toBe('10.0.0.1')
  expect(networkOf('10.0.0.1')).toBe('10.0.0.1')
})
