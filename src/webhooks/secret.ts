import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { HoldfastError } from '../errors/errors.ts'

const prefix = 'whsec_'
const minBytes = 24
const maxBytes = 64
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16
const sealedPrefix = 'v1:'
const plainPrefix = 'plain:'
const wanted =
  'Set secretKey (HOLDFAST_SECRET_KEY) to 32 bytes as base64 or hex, such as the output of `openssl rand -base64 32`'

/** A new signing secret, in the format of Standard Webhooks. */
export function freshSecret(): string {
  return prefix + randomBytes(32).toString('base64')
}

/** Checks that a secret has the format of Standard Webhooks. No message repeats it. */
export function checkSecret(text: unknown): string {
  if (typeof text !== 'string' || !text.startsWith(prefix))
    throw invalid(`A webhook secret must begin with ${prefix}, followed by base64`)
  const bytes = base64(text.slice(prefix.length))
  if (!bytes) throw invalid(`The part of a webhook secret after ${prefix} must be base64 with padding`)
  if (bytes.length < minBytes || bytes.length > maxBytes)
    throw invalid(`A webhook secret must have ${minBytes} to ${maxBytes} bytes, but this one has ${bytes.length}`)
  return text
}

/** The bytes of a secret: the key of its signatures. */
export function secretBytes(secret: string): Buffer {
  return Buffer.from(checkSecret(secret).slice(prefix.length), 'base64')
}

/** Parses the key that encrypts secrets: 32 bytes as hex or base64. */
export function parseSecretKey(text: string): Buffer {
  const trimmed = text.trim()
  // hex first: 64 hex digits are also valid base64, but of 48 bytes
  const key = /^[0-9a-f]{64}$/i.test(trimmed) ? Buffer.from(trimmed, 'hex') : base64(trimmed)
  if (key?.length === keyBytes) return key
  throw new HoldfastError('config_invalid', `The secret key has the wrong format or length. ${wanted}.`)
}

/** A secret as it is stored: encrypted and authenticated if there is a key, otherwise in plain text. */
export function seal(secret: string, key: Buffer | null): string {
  if (!key) return plainPrefix + secret
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
  const sealed = [nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]
  return sealedPrefix + Buffer.concat(sealed).toString('base64')
}

/** The reverse of `seal`. Secrets that were stored without a key stay readable when there is one. */
export function unseal(sealed: string, key: Buffer | null): string {
  if (sealed.startsWith(plainPrefix)) return sealed.slice(plainPrefix.length)
  const bytes = sealed.startsWith(sealedPrefix) ? base64(sealed.slice(sealedPrefix.length)) : undefined
  if (!bytes || bytes.length < nonceBytes + tagBytes) throw wrongKey('The stored secret has an unknown format')
  if (!key) throw wrongKey(`A webhook secret is encrypted, but this process has no secret key. ${wanted}`)
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
    decipher.setAuthTag(bytes.subarray(-tagBytes))
    const opened = [decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()]
    return Buffer.concat(opened).toString('utf8')
  } catch (cause) {
    throw wrongKey(
      'A webhook secret was encrypted with a different secret key, or has been changed since. Set secretKey (HOLDFAST_SECRET_KEY) to the key that encrypted it',
      cause,
    )
  }
}

/** Decodes canonical base64; undefined for anything else, of which Node would decode as much as it can. */
function base64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}

function invalid(sentence: string): HoldfastError {
  return new HoldfastError('webhook_secret_invalid', `${sentence}.`)
}

function wrongKey(sentence: string, cause?: unknown): HoldfastError {
  return new HoldfastError('secret_key_wrong', `${sentence}.`, { cause })
}
