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

/** Makes a keyring. Without keys, whoever reaches the server on this machine is let in. */
export function makeKeyring(keys: () => Keys, needsKey: boolean): Keyring {
  const known = new KnownKeys((text) => keys().check(text))
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
      mustBeHere(request)
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
 * A page in somebody's browser may reach this machine under a name of its own choosing, or post to it from elsewhere. Without keys only a request that names
 * this machine, and comes from no other page, is let in.
 */
function mustBeHere(request: Ask): void {
  const host = new URL(request.url).hostname
  const origin = request.headers.get('origin')
  const isOwn = origin === null || (URL.canParse(origin) && ownNames.has(new URL(origin).hostname))
  if (ownNames.has(host) && isOwn) return
  throw new HoldfastError(
    'host_refused',
    'Without keys this server answers only to localhost, 127.0.0.1 and [::1], and to no page of another site. Use one of these names, or a key.',
  )
}
