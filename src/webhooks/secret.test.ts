import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { checkSecret, freshSecret, parseSecretKey, seal, secretBytes, unseal } from './secret.ts'

const key = randomBytes(32)
const withBytes = (count: number) => `whsec_${randomBytes(count).toString('base64')}`

test('a fresh secret has 32 bytes, is well-formed, and is never the same', () => {
  const secret = freshSecret()
  expect(checkSecret(secret)).toBe(secret)
  expect(secretBytes(secret)).toHaveLength(32)
  expect(freshSecret()).not.toBe(secret)
})

test('a secret has from 24 to 64 bytes', () => {
  for (const count of [24, 25, 64]) expect(secretBytes(withBytes(count))).toHaveLength(count)
  for (const count of [0, 23, 65])
    expect(() => checkSecret(withBytes(count))).toThrow(expect.objectContaining({ code: 'webhook_secret_invalid' }))
})

test.each([
  ['no prefix', freshSecret().slice('whsec_'.length)],
  ['another prefix', freshSecret().replace('whsec_', 'whpk_')],
  ['capital letters', freshSecret().replace('whsec_', 'WHSEC_')],
  ['no padding', freshSecret().replace('=', '')],
  ['other letters', freshSecret().replace(/.{4}$/, '!!!=')],
  ['the alphabet of URLs', `whsec_${Buffer.alloc(33, 0xff).toString('base64url')}`],
  ['a line break', `${freshSecret()}\n`],
  ['hex', `whsec_${randomBytes(32).toString('hex')}0`],
  ['no text', 42],
  ['nothing', undefined],
])('a secret of a wrong form is refused, and not repeated: %s', (_, secret) => {
  expect(() => checkSecret(secret)).toThrow(expect.objectContaining({ code: 'webhook_secret_invalid' }))
  if (typeof secret === 'string') {
    const tail = secret.slice(10, 30)
    expect(() => checkSecret(secret)).not.toThrow(tail)
  }
})

test('the key may be written as base64 or as hex', () => {
  expect(parseSecretKey(key.toString('base64'))).toEqual(key)
  expect(parseSecretKey(key.toString('hex'))).toEqual(key)
  expect(parseSecretKey(`${key.toString('hex').toUpperCase()}\n`)).toEqual(key)
})

test.each(['', 'password', randomBytes(31).toString('hex'), randomBytes(33).toString('base64'), 'z'.repeat(64)])(
  'a key of a wrong form names its setting, and is not repeated: %j',
  (text) => {
    expect(() => parseSecretKey(text)).toThrow(expect.objectContaining({ code: 'config_invalid' }))
    expect(() => parseSecretKey(text)).toThrow(/HOLDFAST_SECRET_KEY/)
    if (text) expect(() => parseSecretKey(text)).not.toThrow(text)
  },
)

test('what was sealed with a key is unsealed with it, and never looks the same', () => {
  const secret = freshSecret()
  const sealed = seal(secret, key)
  expect(sealed).toMatch(/^v1:/)
  expect(sealed).not.toContain(secret.slice(6))
  expect(seal(secret, key)).not.toBe(sealed)
  expect(unseal(sealed, key)).toBe(secret)
})

test('without a key a secret is stored readable, and stays so when there is one', () => {
  const secret = freshSecret()
  expect(seal(secret, null)).toBe(`plain:${secret}`)
  expect(unseal(seal(secret, null), null)).toBe(secret)
  expect(unseal(seal(secret, null), key)).toBe(secret)
})

test('a missing or another key is named with its setting', () => {
  const sealed = seal(freshSecret(), key)
  for (const wrong of [null, randomBytes(32)]) {
    expect(() => unseal(sealed, wrong)).toThrow(expect.objectContaining({ code: 'secret_key_wrong' }))
    expect(() => unseal(sealed, wrong)).toThrow(/secretKey \(HOLDFAST_SECRET_KEY\)/)
  }
})

test('a sealed secret that was changed anywhere is refused', () => {
  const bytes = Buffer.from(seal(freshSecret(), key).slice(3), 'base64')
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(() => unseal(`v1:${changed.toString('base64')}`, key)).toThrow(
      expect.objectContaining({ code: 'secret_key_wrong' }),
    )
  }
})

test.each(['', 'v1:', 'v1:AAAA', 'v1:!', 'v2:AAAA', 'secret'])('an unknown form is refused: %j', (sealed) => {
  expect(() => unseal(sealed, key)).toThrow(expect.objectContaining({ code: 'secret_key_wrong' }))
})
