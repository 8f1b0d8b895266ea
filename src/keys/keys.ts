import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { uuidv7 } from 'uuidv7'
import { HoldfastError } from '../errors/errors.ts'
import { parseJobId } from '../job/id.ts'
import { isName, nameForm } from '../job/names.ts'
import { flagOf, idOf, limitOf, mustBeObject, refuse, textOf } from '../job/validate-argument.ts'
import type { Runner, Store } from '../postgres/store.ts'
import type { Remote } from '../remote/remote.ts'
import { createKey, findKey, type KeyRow, keyPages, revokeKey, serverSecret, touchKeys } from './keys.sql.ts'

/** The permissions of a key. `admin` includes all others, and manages keys. */
export const scopes = {
  submit: 'Submit, cancel and redo jobs.',
  read: 'Read jobs, results, events, queues.',
  work: 'Open sessions, claim and settle jobs.',
  operate: 'Webhooks, queues, groups, repairs, bulk operations.',
  admin: 'Everything above, and API keys.',
} as const

/** A permission of a key. */
export type Scope = keyof typeof scopes

/** An API key, without its secret. */
export interface ApiKey {
  id: string
  name: string
  /** The tenant whose jobs it can access; null for all tenants. */
  tenant: string | null
  scopes: Scope[]
  createdAt: Date
  /** Who created it: `key <id>`, or the given `by`; null if it is unknown. */
  createdBy: string | null
  expiresAt: Date | null
  revokedAt: Date | null
  revokedBy: string | null
  /** When it was last used, to the minute. */
  usedAt: Date | null
}

/** A key to create. */
export interface NewKey {
  /** A name for humans. */
  name: string
  scopes: readonly Scope[]
  /** The tenant whose jobs it can access; null for all tenants. Required. */
  tenant: string | null
  /** When it expires, in milliseconds from now. Default: never, or with the key that creates it. */
  expiresMs?: number
}

/** Who creates a key. */
export interface KeyMaker {
  /** Who creates it; recorded with its event. Default: `key <id>` if a key creates it. */
  by?: string
  /** The id of the key that creates it. The new key may not have more permissions or a later expiry than this one. */
  maker?: string
}

/** Which keys to list. */
export interface KeyListOptions {
  /** Only keys of this tenant. */
  tenant?: string
  /** Only keys whose id ends with this. */
  ending?: string
  /** Only keys that are neither revoked nor expired. Default: all. */
  good?: boolean
  /** Only keys created before this one: the last id of the previous page. */
  before?: string
  /** Maximum number of keys, at most 1000. Default: 100. */
  limit?: number
}

/** The API keys of the HTTP API. */
export interface Keys {
  /** Creates a key. Its text is returned only now. Throws key_exceeds_maker. */
  create(key: NewKey, how?: KeyMaker): Promise<ApiKey & { key: string }>
  /** Lists keys, newest first. */
  list(options?: KeyListOptions): Promise<ApiKey[]>
  /** Revokes a key, ends the remote worker sessions that it has opened, and releases their jobs. Throws key_not_found. */
  revoke(id: string, options?: { tenant?: string; by?: string }): Promise<ApiKey>
  /** Returns the key with this text if it is valid, or null. The comparison takes constant time. */
  check(text: string): Promise<ApiKey | null>
  /** The same for several texts, in their order, with one statement. */
  checkAll(texts: readonly string[]): Promise<(ApiKey | null)[]>
  /** Records that keys were just used. */
  touch(ids: string[]): Promise<void>
  /** The secret that the servers on this database use to encrypt cursors. */
  serverSecret(): Promise<Buffer>
}

/** Makes the keys of an engine. Revoking a key ends the sessions that it has opened. */
export function makeKeys(store: Store, sessions: Pick<Remote, 'endOf'>): Keys {
  return {
    async create(given, how = {}) {
      mustBeObject('key', given)
      mustBeObject('maker of a key', how)
      const { name, tenant, expiresMs } = given
      checkKey(given)
      const id = uuidv7()
      const secret = randomBytes(32).toString('base64url')
      const maker = how.maker === undefined ? null : idOf(how.maker)
      const row = {
        id,
        name: textOf('name', name) as string,
        tenant,
        scopes: [...new Set(given.scopes)],
        hash: hashOf(secret),
        expiresMs: expiresMs ?? null,
        by: textOf('by', how.by) ?? (maker && `key ${maker}`),
        maker,
      }
      const [created] = await store.run(createKey, row)
      if (!created) throw await whyRefused(store, maker as string)
      return { ...keyOf(created), key: `hf_${id.replaceAll('-', '')}_${secret}` }
    },
    async list(options = {}) {
      mustBeObject('options of list', options)
      const { tenant, ending, good = false, before, limit = 100 } = options
      const page = {
        tenant: textOf('tenant', tenant),
        ending: textOf('ending', ending)?.toLowerCase() ?? null,
        isGood: flagOf('good', good),
        before: before === undefined ? null : idOf(before),
        limit: limitOf(limit, 1000),
      }
      return (await store.run(page.tenant === null ? keyPages.all : keyPages.ofTenant, page)).map(keyOf)
    },
    async revoke(id, options = {}) {
      mustBeObject('options of revoke', options)
      const known = typeof id === 'string' ? parseJobId(id) : null
      const [tenant, by] = [textOf('tenant', options.tenant), textOf('by', options.by)]
      const [revoked] = known ? await store.contend(revokeKey, { id: known, tenant, by }) : []
      if (!revoked) throw new HoldfastError('key_not_found', `There is no API key with the id ${JSON.stringify(id)}.`)
      await sessions.endOf(revoked.id)
      return keyOf(revoked)
    },
    check: async (text) => (await checkAll(store, [text]))[0] ?? null,
    checkAll: (texts) => checkAll(store, texts),
    touch: async (ids) => void (await store.run(touchKeys, { ids })),
    async serverSecret() {
      const [row] = await store.run(serverSecret, {})
      if (!row)
        throw new HoldfastError(
          'schema_changed',
          'The row of holdfast.server_secret is missing; restore it from a backup.',
        )
      return row.secret
    },
  }
}

async function checkAll(store: Runner, texts: readonly string[]): Promise<(ApiKey | null)[]> {
  const parts = texts.map((text) => shape.exec(text))
  const ids = parts.flatMap((found) => found?.[1] ?? [])
  if (ids.length === 0) return texts.map(() => null)
  const rows = await store.run(findKey, { ids })
  const byId = new Map(rows.map((row) => [row.id.replaceAll('-', ''), row]))
  return parts.map((found) => {
    if (!found) return null
    const row = byId.get(found[1] as string)
    // compared even if there is no such key, so that the time does not tell which ids exist
    const isSame = timingSafeEqual(row?.hash ?? nobody, hashOf(found[2] as string))
    return row && isSame ? keyOf(row) : null
  })
}

const shape = /^hf_([0-9a-f]{32})_([A-Za-z0-9_-]{43})$/
const nobody = Buffer.alloc(32)

/** Whether a text has the format of a key, before it is looked up. */
export function isKeyShaped(text: string): boolean {
  return shape.test(text)
}

/** A secret has 32 random bytes, so a plain hash is enough to store it. */
function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

/** Why a key was not created: the key that creates it is invalid, or it asked for more than that key has. */
async function whyRefused(store: Runner, maker: string): Promise<HoldfastError> {
  const [good] = await store.run(findKey, { ids: [maker] })
  if (!good) return new HoldfastError('key_refused', 'The API key that creates it was revoked or has expired.')
  const until = good.expires_at ? `, until ${good.expires_at.toISOString()}` : ''
  return new HoldfastError(
    'key_exceeds_maker',
    `A key cannot create a key that can do more or expires later. Yours has the scopes ${good.scopes.join(', ')} for ${good.tenant ?? 'all tenants'}${until}; ask for less, or omit expiresMs.`,
  )
}

function checkKey({ name, tenant, scopes: wanted, expiresMs }: NewKey): void {
  if (typeof name !== 'string' || name.trim() === '' || name.length > 200)
    refuse('name must be a string of 1 to 200 characters', name)
  if (tenant !== null && !isName(tenant)) refuse(`tenant must be null for all tenants, or ${nameForm}`, tenant)
  const all = Object.keys(scopes)
  if (!Array.isArray(wanted) || wanted.length === 0 || !wanted.every((scope) => all.includes(scope)))
    refuse(`scopes must be some of ${all.join(', ')}`, wanted)
  if (expiresMs !== undefined && !(Number.isFinite(expiresMs) && expiresMs > 0 && expiresMs <= 3_153_600_000_000))
    refuse('expiresMs must be between 1 ms and 100 years', expiresMs)
}

function keyOf(row: KeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    tenant: row.tenant,
    scopes: row.scopes as Scope[],
    createdAt: row.created_at,
    createdBy: row.created_by,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    revokedBy: row.revoked_by,
    usedAt: row.used_at,
  }
}
