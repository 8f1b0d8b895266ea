import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import { isKeyShaped, type Keys } from '../keys/keys.ts'
import { anyoneHere, type Caller } from './caller.ts'
import { KnownKeys } from './known-keys.ts'
import { Refusals } from './refusals.ts'
import type { HttpRequest } from './request.ts'

/** Authenticates requests. */
export interface Keyring {
  /** Who makes this request. Throws key_missing, key_refused, rate_limited or host_refused. */
  callerOf(request: HttpRequest): Promise<Caller>
  /** Whether this request would still be accepted. It stays accepted while the database is unreachable. */
  isStillGood(request: HttpRequest): Promise<boolean>
  /** How many refusals are being delayed. */
  held(): number
  /** Records which keys were used since the last call. */
  noteUses(): Promise<void>
}

/** What a keyring needs. */
export interface KeyringOptions
  extends Pick<Config, 'httpKeyTries' | 'httpKeyLookups' | 'httpRefusalMs' | 'httpOrigins'> {
  /** False accepts requests from this machine without a key. */
  needsKey: boolean
  /** Fires when the server stops. */
  stopping: AbortSignal
}

/** Makes a keyring. */
export function makeKeyring(keys: () => Keys, { needsKey, httpOrigins, stopping, ...limits }: KeyringOptions): Keyring {
  const known = new KnownKeys((texts) => keys().checkAll(texts), limits)
  const refusals = new Refusals(limits, stopping)
  const used = new Set<string>()

  return {
    async callerOf(request) {
      try {
        return await callerOf(request)
      } catch (error) {
        if (isRefusal(error)) await refusals.delay(request.address)
        throw error
      }
    },
    held: () => refusals.held,
    isStillGood: (request) =>
      callerOf(request).then(
        () => true,
        (error) => !(error instanceof HoldfastError && error.code === 'key_refused'),
      ),
    async noteUses() {
      if (used.size === 0) return
      const ids = [...used]
      used.clear()
      await keys().touch(ids)
    },
  }

  async function callerOf(request: HttpRequest): Promise<Caller> {
    const header = request.headers.get('authorization')
    if (header === null) {
      if (needsKey) throw keyMissing
      mustBeHere(request, httpOrigins)
      return anyoneHere
    }
    const text = textOf(header)
    const key = text === undefined ? null : await known.find(text, request.address)
    if (!key) throw keyRefused
    used.add(key.id)
    return { keyId: key.id, tenant: key.tenant, scopes: key.scopes }
  }
}

/** Whether the request was refused, rather than failed because of the server. */
function isRefusal(error: unknown): boolean {
  return error instanceof HoldfastError && error.status < 500
}

/** Far longer than a key with its scheme; longer headers are not even parsed. */
const longestHeader = 200

/** The key in a header, if it has the form of one. */
function textOf(header: string): string | undefined {
  if (header.length > longestHeader) return undefined
  const [, text] = /^Bearer +(\S+) *$/i.exec(header) ?? []
  return text !== undefined && isKeyShaped(text) ? text : undefined
}

// shared by all requests: strangers can cause many of these, and a stack for each would cost more than the rest of the response

const keyMissing = new HoldfastError(
  'key_missing',
  'Send an API key as "Authorization: Bearer hf_…". Create one with `holdfast keys create`.',
)

/** The error for a key that is not valid, or no longer valid. */
export const keyRefused = new HoldfastError('key_refused', 'The API key does not exist, was revoked, or has expired.')

const ownNames = new Set(['localhost', '127.0.0.1', '[::1]', '::1'])

/**
 * A page in a browser may reach this machine under a host name of its choice (DNS rebinding), or post to it from another origin, such as another
 * port of this machine. Without a key, a request must name this machine as its host, and must not come from a page of another origin, except local
 * origins in the settings.
 */
function mustBeHere(request: HttpRequest, origins: readonly string[]): void {
  const own = new URL(request.url)
  const origin = request.headers.get('origin')
  const isWelcome = origin === null || origin === own.origin || (origins.includes(origin) && isLocal(origin))
  if (ownNames.has(own.hostname) && isWelcome) return
  throw new HoldfastError(
    'host_refused',
    'Without a key, this server accepts only requests to localhost, 127.0.0.1 or [::1], and none from pages of other origins. Use one of these host names, send a key, or add a local origin to httpOrigins.',
  )
}

function isLocal(origin: string): boolean {
  return URL.canParse(origin) && ownNames.has(new URL(origin).hostname)
}
