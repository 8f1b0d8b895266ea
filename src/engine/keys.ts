import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { uuidv7 } from 'uuidv7'
import { HoldfastError } from '../errors/errors.ts'
import { isName } from '../job/define.ts'
import { parseJobId } from '../job/id.ts'
import type { Runner } from '../store/store.ts'
import type { Remote } from '../worker/remote.ts'
import { mustBeObject, textOf } from './given.ts'
import { createKey, doorSecret, findKey, type KeyRow, listKeys, revokeKey, touchKeys } from './keys.sql.ts'

/** What a key may do. `admin` may do all of it, and manage keys. */
export const scopes = {
  submit: 'Submit, cancel and redo jobs.',
  read: 'See jobs, results, events, queues.',
  work: 'Open sessions, claim and settle jobs.',
  operate: 'Webhooks, queues, groups, repairs.',
  admin: 'All of it, and the keys themselves.',
} as const

/** One of the things that a key may do. */
export type Scope = keyof typeof scopes

/** An API key, without its secret. */
export interface ApiKey {
  id: string
  name: string
  /** Whose jobs it sees; null for all tenants. */
  tenant: string | null
  scopes: Scope[]
  createdAt: Date
  expiresAt: Date | null
  revokedAt: Date | null
  /** To the minute. */
  usedAt: Date | null
}

/** A key to create. */
export interface NewKey {
  /** For people. */
  name: string
  scopes: readonly Scope[]
  /** Whose jobs it sees; null for all tenants. Must be said. */
  tenant: string | null
  /** After how long it is useless by itself; default: never. */
  expiresMs?: number
}

/** The keys that open the HTTP door. */
export interface Keys {
  /** Creates a key. Its text is shown this once. */
  create(key: NewKey): Promise<ApiKey & { key: string }>
  list(options?: { tenant?: string; limit?: number }): Promise<ApiKey[]>
  /** Makes a key useless, ends the sessions of remote workers that it has opened, and gives their jobs back. Throws key_not_found. */
  revoke(id: string, scope?: { tenant?: string }): Promise<ApiKey>
  /** The key with this text, if it is good; compared in constant time. */
  check(text: string): Promise<ApiKey | null>
  /** Notes that these were used. */
  touch(ids: string[]): Promise<void>
  /** What servers on this database seal places in lists with. */
  doorSecret(): Promise<Buffer>
}

/** Makes the keys of an engine. A key that is revoked takes the sessions along that it has opened. */
export function makeKeys(store: Runner, sessions: Pick<Remote, 'endOf'>): Keys {
  return {
    async create(given) {
      mustBeObject('key', given)
      const { name, tenant, expiresMs } = given
      checkKey(given)
      const id = uuidv7()
      const secret = randomBytes(32).toString('base64url')
      const row = {
        id,
        name: textOf('name', name) as string,
        tenant,
        scopes: [...new Set(given.scopes)],
        hash: hashOf(secret),
        expiresMs: expiresMs ?? null,
      }
      const [created] = await store.run(createKey, row)
      return { ...keyOf(created as KeyRow), key: `hf_${id.replaceAll('-', '')}_${secret}` }
    },
    async list({ tenant, limit = 1000 } = {}) {
      return (await store.run(listKeys, { tenant: textOf('tenant', tenant), limit })).map(keyOf)
    },
    async revoke(id, { tenant } = {}) {
      const known = typeof id === 'string' ? parseJobId(id) : null
      const [revoked] = known ? await store.run(revokeKey, { id: known, tenant: textOf('tenant', tenant) }) : []
      if (!revoked) throw new HoldfastError('key_not_found', `There is no API key with the id ${JSON.stringify(id)}.`)
      await sessions.endOf(revoked.id)
      return keyOf(revoked)
    },
    async check(text) {
      const found = shape.exec(text)
      if (!found) return null
      const [row] = await store.run(findKey, { id: found[1] as string })
      // compared even if there is none, so that the time tells nothing of which ids exist
      const isSame = timingSafeEqual(row?.hash ?? nobody, hashOf(found[2] as string))
      return row && isSame ? keyOf(row) : null
    },
    touch: async (ids) => void (await store.run(touchKeys, { ids })),
    async doorSecret() {
      const [row] = await store.run(doorSecret, {})
      if (!row) throw new HoldfastError('schema_changed', 'The row of holdfast.door is gone; restore it from a backup.')
      return row.secret
    },
  }
}

const shape = /^hf_([0-9a-f]{32})_([A-Za-z0-9_-]{43})$/
const nobody = Buffer.alloc(32)

/** Whether a text could be a key at all, before anybody looks it up. */
export function isKeyShaped(text: string): boolean {
  return shape.test(text)
}

/** Of 32 random bytes, so nothing slower than a plain hash is needed to keep it. */
function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

function checkKey({ name, tenant, scopes: wanted, expiresMs }: NewKey): void {
  if (typeof name !== 'string' || name.trim() === '' || name.length > 200)
    refuse('name must be a text of 1 to 200 characters', name)
  if (tenant !== null && !isName(tenant))
    refuse('tenant must be null for all tenants, or up to 100 letters, digits and any of _ . : -', tenant)
  const all = Object.keys(scopes)
  if (!Array.isArray(wanted) || wanted.length === 0 || !wanted.every((scope) => all.includes(scope)))
    refuse(`scopes must be some of ${all.join(', ')}`, wanted)
  if (expiresMs !== undefined && !(Number.isFinite(expiresMs) && expiresMs > 0 && expiresMs <= 3_153_600_000_000))
    refuse('expiresMs must be milliseconds from 1 to 100 years', expiresMs)
}

function refuse(rule: string, value: unknown): never {
  throw new HoldfastError('option_invalid', `The option ${rule}, not ${JSON.stringify(value) ?? String(value)}.`)
}

function keyOf(row: KeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    tenant: row.tenant,
    scopes: row.scopes as Scope[],
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    usedAt: row.used_at,
  }
}
