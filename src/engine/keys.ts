import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { uuidv7 } from 'uuidv7'
import { HoldfastError } from '../errors/errors.ts'
import { isName } from '../job/define.ts'
import { parseJobId } from '../job/id.ts'
import type { Runner } from '../store/store.ts'
import type { Remote } from '../worker/remote.ts'
import { flagOf, idOf, limitOf, mustBeObject, textOf } from './given.ts'
import { createKey, doorSecret, findKey, type KeyRow, keyPages, revokeKey, touchKeys } from './keys.sql.ts'

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
  /** Who made it: `key <id>`, or whatever they called themselves; null if they did not say. */
  createdBy: string | null
  expiresAt: Date | null
  revokedAt: Date | null
  revokedBy: string | null
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
  /** After how long it is useless by itself; default: never, or with the key that makes it. */
  expiresMs?: number
}

/** Who makes a key. */
export interface KeyMaker {
  /** For the record; default: `key <id>` if a key makes it. */
  by?: string
  /** The id of the key that makes it. The new one may do no more than this one, and expires no later. */
  maker?: string
}

/** Which keys to list. */
export interface KeyListOptions {
  tenant?: string
  /** Only those whose ids end with this. */
  ending?: string
  /** Only those that are neither revoked nor expired. Default: all. */
  good?: boolean
  /** Only keys made before this one: the last id of the page before. */
  before?: string
  /** Default 100, at most 1000. */
  limit?: number
}

/** The keys that open the HTTP door. */
export interface Keys {
  /** Creates a key. Its text is shown this once. Throws key_exceeds_maker. */
  create(key: NewKey, how?: KeyMaker): Promise<ApiKey & { key: string }>
  /** A page of keys, the latest first. */
  list(options?: KeyListOptions): Promise<ApiKey[]>
  /** Makes a key useless, ends the sessions of remote workers that it has opened, and gives their jobs back. Throws key_not_found. */
  revoke(id: string, options?: { tenant?: string; by?: string }): Promise<ApiKey>
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
      const [revoked] = known ? await store.run(revokeKey, { id: known, tenant, by }) : []
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

/** A key was not made: the one that should make it is useless, or it asked for more than that one has. */
async function whyRefused(store: Runner, maker: string): Promise<HoldfastError> {
  const [good] = await store.run(findKey, { id: maker })
  if (!good) return new HoldfastError('key_refused', 'The API key that makes it was revoked or has expired.')
  const until = good.expires_at ? `, until ${good.expires_at.toISOString()}` : ''
  return new HoldfastError(
    'key_exceeds_maker',
    `A key makes no key that can do more or lives longer. Yours has the scopes ${good.scopes.join(', ')} for ${good.tenant ?? 'all tenants'}${until}: ask for less, or leave expiresMs out.`,
  )
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
    createdBy: row.created_by,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    revokedBy: row.revoked_by,
    usedAt: row.used_at,
  }
}
