import { HoldfastError } from '../errors/errors.ts'
import { nearest } from '../errors/nearest.ts'
import { type AnyJob, defineJob } from '../job/define.ts'
import type { Runner } from '../store/store.ts'
import { limitOf, mustBeObject, textOf } from './given.ts'
import { findKind, type KindRow, listKinds, nearKinds } from './kinds.sql.ts'

/** A kind, as the last worker that knows it has registered it. */
export interface RegisteredKind {
  name: string
  /** Whose jobs it decides about: those of one tenant, or with null those of all. One that is for all tenants applies first. */
  tenant: string | null
  queue: string
  priority: number
  crashBudget: number
  stages: { name: string; optional: boolean }[]
  seenAt: Date
}

/** Which kinds to list. */
export interface KindOptions {
  /** Only those that apply to this tenant, or would if there were none for all tenants. */
  tenant?: string
  /** Only those behind this one: the last of the page before. */
  after?: { name: string; tenant: string | null }
  /** Default and most: 1,000. */
  limit?: number
}

const listedNear = 5
/** How many names on either side are compared with one that nobody knows. */
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

/** The kind of that name that applies to the jobs of a tenant; null if there is none. */
export async function kindOf(store: Runner, name: string, tenant = 'default'): Promise<RegisteredKind | null> {
  const [row] = await store.run(findKind, { name: textOf('name', name) ?? '', tenant: textOf('tenant', tenant) ?? '' })
  return row ? kindOfRow(row) : null
}

/** Some names of kinds near a name that nobody knows: those next to it in the order of the alphabet. */
export async function nearKindsOf(store: Runner, name: string, tenant = 'default'): Promise<string[]> {
  const near = { name: textOf('name', name) ?? '', tenant: textOf('tenant', tenant) ?? '', limit: lookedAt }
  return (await store.run(nearKinds, near)).map((row) => row.name)
}

function kindOfRow({ seen_at, crash_budget, tenant, ...kind }: KindRow): RegisteredKind {
  return { ...kind, tenant: tenant === '' ? null : tenant, crashBudget: crash_budget, seenAt: seen_at }
}

/** A registered kind as one that can be submitted and nothing else: its handlers are with the workers. */
export function submittable({ name, queue, priority, crashBudget }: RegisteredKind): AnyJob {
  return defineJob(name, { queue, priority, crashBudget, run: neverRun })
}

function neverRun(): never {
  throw new Error('This kind is known by name only.')
}

/** That no kind is named so, and a few that are named alike: there may be more than anybody wants to read. */
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
