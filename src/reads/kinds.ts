import { HoldfastError } from '../errors/errors.ts'
import { nearest } from '../errors/nearest.ts'
import { type AnyJob, defineJob } from '../job/define.ts'
import type { KeptMs } from '../job/keep.ts'
import { limitOf, mustBeObject, textOf } from '../job/validate-argument.ts'
import type { Runner } from '../postgres/store.ts'
import { findKind, type KindRow, listKinds, nearKinds } from './kinds.sql.ts'

/** A kind, as the last worker registered it. */
export interface RegisteredKind {
  name: string
  /** The tenant to whose jobs it applies; null for all tenants. A kind for all tenants takes precedence. */
  tenant: string | null
  queue: string
  priority: number
  crashBudget: number
  stages: { name: string; optional: boolean; signal?: string }[]
  /** How long its jobs are kept after they end, in milliseconds, by state; null if the settings apply. */
  keep: KeptMs | null
  seenAt: Date
}

/** Which kinds to list. */
export interface KindOptions {
  /** Only kinds for this tenant or for all tenants. */
  tenant?: string
  /** Only kinds after this one: the last of the previous page. */
  after?: { name: string; tenant: string | null }
  /** Maximum number of kinds, at most 1000. Default: 1000. */
  limit?: number
}

const listedNear = 5
/** How many names on either side of an unknown name to compare with it. */
const lookedAt = 10

/** A page of kinds: those for all tenants first, then by tenant and name. */
export async function kindsOf(store: Runner, options: KindOptions): Promise<RegisteredKind[]> {
  mustBeObject('options of kinds', options)
  const { after, limit = 1000 } = options
  if (after !== undefined) mustBeObject('after', after)
  const rows = await store.run(listKinds, {
    tenant: textOf('tenant', options.tenant),
    after: after
      ? { tenant: textOf('tenant', after.tenant ?? '') ?? '', name: textOf('name', after.name) ?? '' }
      : null,
    limit: limitOf(limit, 1000),
  })
  return rows.map(kindOfRow)
}

/** The kind with this name that applies to the jobs of a tenant; null if there is none. */
export async function kindOf(store: Runner, name: string, tenant = 'default'): Promise<RegisteredKind | null> {
  const [row] = await store.run(findKind, { name: textOf('name', name) ?? '', tenant: textOf('tenant', tenant) ?? '' })
  return row ? kindOfRow(row) : null
}

/** Names of kinds close to an unknown name in alphabetical order. */
export async function nearKindsOf(store: Runner, name: string, tenant = 'default'): Promise<string[]> {
  const near = { name: textOf('name', name) ?? '', tenant: textOf('tenant', tenant) ?? '', limit: lookedAt }
  return (await store.run(nearKinds, near)).map((row) => row.name)
}

function kindOfRow({ seen_at, crash_budget, tenant, ...kind }: KindRow): RegisteredKind {
  return { ...kind, tenant: tenant === '' ? null : tenant, crashBudget: crash_budget, seenAt: seen_at }
}

/** A registered kind as a definition that can only be submitted: its handlers are in the workers. */
export function submittable({ name, queue, priority, crashBudget }: RegisteredKind): AnyJob {
  return defineJob(name, { queue, priority, crashBudget, run: neverRun })
}

function neverRun(): never {
  throw new Error('This kind is known by name only.')
}

/** The error for an unknown kind. It lists only a few known kinds, because there may be very many. */
export function unknownKind(name: string, known: readonly string[], who: string): HoldfastError {
  const near = nearest(name, known)
  const few = [...new Set([...(near ? [near] : []), ...known])].slice(0, listedNear)
  const more = new Set(known).size > few.length ? ' and others' : ''
  const list = few.length > 0 ? `${who}: ${few.join(', ')}${more}.` : `${who} no kinds yet; start a worker first.`
  return new HoldfastError(
    'unknown_kind',
    `No kind is named ${JSON.stringify(name)}${near ? `; did you mean ${near}?` : '.'} ${list}`,
    { details: { known: few } },
  )
}
