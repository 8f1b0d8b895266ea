import { createHmac } from 'node:crypto'
import { HoldfastError } from '../errors/errors.ts'
import { secretBytes } from './secret.ts'

/** What a signature is about: the id and the time are signed too, so that nobody can send an old body as a new event. */
export interface Signable {
  /** The value of `webhook-id`. */
  id: string
  /** The value of `webhook-timestamp`, in whole seconds. */
  timestamp: number
  /** Exactly what is sent; a text is sent as UTF-8. */
  body: string | Uint8Array
  /** One secret; two while a secret is replaced, so that receivers with either of them agree. */
  secrets: string[]
}

/** The value of `webhook-signature` by Standard Webhooks: one `v1,…` per secret, with spaces between. */
export function sign({ id, timestamp, body, secrets }: Signable): string {
  if (secrets.length === 0) throw new HoldfastError('webhook_secret_invalid', 'A webhook needs a secret to be signed.')
  // milliseconds would pass here, and every receiver would refuse them as a time in the far future
  if (!Number.isSafeInteger(timestamp) || timestamp < 0 || timestamp >= 100_000_000_000)
    throw new HoldfastError('option_invalid', `The timestamp of a webhook must be whole seconds, not ${timestamp}.`)
  return secrets.map((secret) => `v1,${hmac(secret, `${id}.${timestamp}.`, body)}`).join(' ')
}

function hmac(secret: string, head: string, body: string | Uint8Array): string {
  return createHmac('sha256', secretBytes(secret)).update(head).update(body).digest('base64')
}
