import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { freshSecret } from './secret.ts'
import { sign } from './sign.ts'

const id = 'msg_0192f0c1'
const timestamp = Math.floor(Date.now() / 1_000)
const body = JSON.stringify({ type: 'job.succeeded', data: { name: 'Zoë ☕', text: 'a\u2028b' } })

/** What a receiver with this secret says of a delivery. */
function verified(secret: string, given: { id?: string; timestamp?: number; body?: string; signature: string }) {
  try {
    new Webhook(secret).verify(given.body ?? body, {
      'webhook-id': given.id ?? id,
      'webhook-timestamp': String(given.timestamp ?? timestamp),
      'webhook-signature': given.signature,
    })
    return 'verified'
  } catch {
    return 'refused'
  }
}

test('a receiver with either secret verifies the signature while a secret is replaced', () => {
  const [old, fresh, other] = [freshSecret(), freshSecret(), freshSecret()]
  const signature = sign({ id, timestamp, body, secrets: [fresh, old] })
  expect(signature).toMatch(/^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/)
  expect(verified(old, { signature })).toBe('verified')
  expect(verified(fresh, { signature })).toBe('verified')
  expect(verified(other, { signature })).toBe('refused')
})

test('a change of one byte, of the id or of the time breaks the signature', () => {
  const secret = freshSecret()
  const signature = sign({ id, timestamp, body, secrets: [secret] })
  expect(verified(secret, { signature })).toBe('verified')
  expect(verified(secret, { signature, body: body.replace('job', 'jab') })).toBe('refused')
  expect(verified(secret, { signature, body: `${body} ` })).toBe('refused')
  expect(verified(secret, { signature, id: `${id}x` })).toBe('refused')
  expect(verified(secret, { signature, timestamp: timestamp + 1 })).toBe('refused')
})

test('a text is signed as the bytes that are sent', () => {
  const secrets = [freshSecret()]
  expect(sign({ id, timestamp, body, secrets })).toBe(sign({ id, timestamp, body: Buffer.from(body), secrets }))
})

test('the signature is the one of the specification', () => {
  const secrets = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw']
  const given = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1_614_265_330, body: '{"test": 2432232314}', secrets }
  expect(sign(given)).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
})

test('nothing is signed without a secret, with a malformed one, or with milliseconds', () => {
  expect(() => sign({ id, timestamp, body, secrets: [] })).toThrow(/requires a secret/)
  expect(() => sign({ id, timestamp, body, secrets: ['secret'] })).toThrow(/whsec_/)
  for (const wrong of [Date.now(), 1.5, -1, Number.NaN])
    expect(() => sign({ id, timestamp: wrong, body, secrets: [freshSecret()] })).toThrow(/whole seconds/)
})
