import { createHmac } from 'node:crypto'
import { HoldfastError } from '../errors/errors.ts'
import { secretBytes } from './secret.ts'

/** What is signed. It includes the id and the time, so that an old body can't be sent as a new event. */
export interface Signable {
  /** The value of `webhook-id`. */
  id: string
  /** The value of `webhook-timestamp`, in whole seconds. */
  timestamp: number
  /** Exactly what is sent; a string is sent as UTF-8. */
  body: string | Uint8Array
  /** One secret, or two during a rotation, so that receivers with either of them accept the signature. */
  secrets: string[]
}

/** The value of `webhook-signature` according to Standard Webhooks: one `v1,…` per secret, separated by spaces. */
export function sign({ id, timestamp, body, secrets }: Signable): string {
  if (secrets.length === 0) throw new HoldfastError('webhook_secret_invalid', 'Signing a webhook requires a secret.')
  // without this check milliseconds would be signed, and every receiver would reject them as far in the future
  if (!Number.isSafeInteger(timestamp) || timestamp < 0 || timestamp >= 100_000_000_000)
    throw new HoldfastError('option_invalid', `The timestamp of a webhook must be whole seconds, not ${timestamp}.`)
  return secrets.map((secret) => `v1,${hmac(secret, `${id}.${timestamp}.`, body)}`).join(' ')
}

function hmac(secret: string, head: string, body: string | Uint8Array): string {
  return createHmac('sha256', secretBytes(secret)).update(head).update(body).digest('base64')
}
