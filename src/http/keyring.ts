import type { Config } from '../config/config.ts'
import { isKeyShaped, type Keys } from '../engine/keys.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { Ask } from './ask.ts'
import { anyoneHere, type Caller } from './caller.ts'
import { KnownKeys } from './known-keys.ts'

/** Tells who calls. */
export interface Keyring {
  /** Who makes this request. Throws key_missing, key_refused, rate_limited or host_refused. */
  callerOf(request: Ask): Promise<Caller>
  /** Whether whoever was let in with this request still would be. A database that is away is no reason to send anybody off. */
  isStillGood(request: Ask): Promise<boolean>
  /** Writes down which keys were used since the last time. */
  noteUses(): Promise<void>
}

/** What a keyring must know. */
export interface KeyringOptions extends Pick<Config, 'httpKeyTries' | 'httpKeyLookups' | 'httpOrigins'> {
  /** False lets in whoever reaches the server on this machine. */
  needsKey: boolean
}

/** Makes a keyring. */
export function makeKeyring(keys: () => Keys, { needsKey, httpOrigins, ...limits }: KeyringOptions): Keyring {
  const known = new KnownKeys((text) => keys().check(text), limits)
  const used = new Set<string>()

  return {
    callerOf,
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

  async function callerOf(request: Ask): Promise<Caller> {
    const header = request.headers.get('authorization')
    if (header === null) {
      if (needsKey)
        throw new HoldfastError(
          'key_missing',
          'Send an API key as "Authorization: Bearer hf_…". `holdfast keys create` makes one.',
        )
      mustBeHere(request, httpOrigins)
      return anyoneHere
    }
    const [, text] = /^Bearer +(\S+) *$/i.exec(header) ?? []
    const key = text === undefined || !isKeyShaped(text) ? null : await known.find(text, request.address)
    if (!key) throw keyRefused()
    used.add(key.id)
    return { keyId: key.id, tenant: key.tenant, scopes: key.scopes }
  }
}

/** What a key hears that is none, or no longer one. */
export function keyRefused(): HoldfastError {
  return new HoldfastError('key_refused', 'There is no such API key, or it was revoked or has expired.')
}

const ownNames = new Set(['localhost', '127.0.0.1', '[::1]', '::1'])

/**
 * A page in somebody's browser may reach this machine under a name of its own choosing, or post to it from elsewhere, be it from another port of this machine.
 * Without keys only a request is let in that names this machine, and comes from no page but those of this server and of local origins that the settings name.
 */
function mustBeHere(request: Ask, origins: readonly string[]): void {
  const own = new URL(request.url)
  const origin = request.headers.get('origin')
  const isWelcome = origin === null || origin === own.origin || (origins.includes(origin) && isLocal(origin))
  if (ownNames.has(own.hostname) && isWelcome) return
  throw new HoldfastError(
    'host_refused',
    'Without keys this server answers only to localhost, 127.0.0.1 and [::1], and to no page of another origin. Use one of these names or a key, or add a local origin to httpOrigins.',
  )
}

function isLocal(origin: string): boolean {
  return URL.canParse(origin) && ownNames.has(new URL(origin).hostname)
}
