import { HoldfastError } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import { checkedLimitKey, type LimitRules, rulesProblem } from '../job/limit.ts'
import { isName, nameForm } from '../job/names.ts'
import { textOf } from '../job/validate-argument.ts'
import type { Store } from '../postgres/store.ts'
import {
  type Adopted,
  type AdoptionCursor,
  adoptJobs,
  changeKeyLimit,
  changeLimiter,
  declareLimits,
  dropEmptyLimiters,
  type LimitRow,
  listLimits,
  removeKeyLimit,
} from './limits.sql.ts'

/** What a limit is on: a queue, a kind, every key of a kind (`key: '*'`), or one key of a kind. */
export type LimitTarget = { queue: string } | { kind: string; key?: string }

/** What can be set for a queue. */
export interface QueueRules extends LimitRules {
  /** Whether its tenants take turns, so that one tenant's backlog delays no other tenant. */
  fair?: boolean
  /** How many turns a tenant gets for one of another's. Default: 1. */
  weights?: Record<string, number>
}

/** A limit, and how many jobs hold its slots. */
export interface Limit extends QueueRules {
  /** What it is on. The key `*` stands for every key of the kind. */
  target: LimitTarget
  /** Whether the code declares it, or it was set at run time. */
  source: 'declared' | 'set'
  /** How many jobs hold a slot now; null for the limit on every key, whose keys have slots of their own. */
  running: number | null
  changedAt: Date
  /** Who set it, if that was given. */
  changedBy: string | null
}

/** Limits that can be changed while everything runs. */
export interface Limits {
  /**
   * Sets a limit: on all jobs of a kind or queue, on every key of a kind (`key: '*'`), or on one key. It takes effect at once, and takes
   * precedence over what the code declares until it is removed. Running jobs above a lower limit keep running.
   */
  set(target: LimitTarget, rules: QueueRules, options?: { by?: string }): Promise<void>
  /** Removes a limit that was set at run time; what the code declares applies again. */
  remove(target: LimitTarget, options?: { by?: string }): Promise<void>
  /** The limit on this target; null if there is none. */
  get(target: LimitTarget): Promise<Limit | null>
  /** All limits. */
  list(): Promise<Limit[]>
}

/** Makes the limits of a connected instance. */
export function makeLimits(store: Store): Limits {
  const list = async () => (await store.run(listLimits, {})).flatMap(limitsOf)
  return {
    set: async (target, rules, { by } = {}) => setLimit(store, target, rules, textOf('by', by)),
    remove: async (target, { by } = {}) => removeLimit(store, target, textOf('by', by)),
    get: async (target) => {
      checkTarget(target)
      const name = nameOf(target)
      return (await list()).find((limit) => nameOf(limit.target) === name) ?? null
    },
    list,
  }
}

const nameOf = (target: LimitTarget) =>
  JSON.stringify('queue' in target ? ['queue', target.queue] : ['kind', target.kind, target.key ?? null])

function limitsOf(row: LimitRow): Limit[] {
  const { declared, chosen, running, changed_at: changedAt, changed_by: changedBy } = row
  const all = row.scope === 'queue' ? { queue: row.name } : { kind: row.name }
  if (row.key !== null)
    return [{ target: { kind: row.name, key: row.key }, ...chosen.whole, source: 'set', running, changedAt, changedBy }]
  const { fair, weights } = { ...declared, ...chosen }
  const rest = { ...(fair !== undefined && { fair }), ...(weights && { weights }) }
  const of = (part: 'whole' | 'each', target: LimitTarget): Limit[] => {
    const rules = chosen[part] ?? declared[part]
    if (!rules && (part === 'each' || Object.keys(rest).length === 0)) return []
    const source = chosen[part] || !declared[part] ? 'set' : 'declared'
    const also = part === 'whole' ? rest : {}
    return [{ target, ...rules, ...also, source, running: part === 'each' ? null : running, changedAt, changedBy }]
  }
  return [...of('whole', all), ...(row.scope === 'kind' ? of('each', { kind: row.name, key: '*' }) : [])]
}

/** How many jobs one statement looks at, to send them to their gates. */
const adoptedAtOnce = 10_000

/** Where a walk over queued jobs starts. */
export const startOfJobs: AdoptionCursor = { queue: '', kind: '', priority: 0, at_us: null }

/** Writes the limits that these kinds declare. What was set at run time takes precedence. */
export async function declareKinds(store: Store, jobs: readonly AnyJob[]): Promise<void> {
  const written = await store.contend(declareLimits, {
    names: jobs.map(({ kind }) => kind),
    declared: jobs.map(({ limit }) =>
      JSON.stringify(limit ? { [limit.key === undefined ? 'whole' : 'each']: rulesOf(limit) } : {}),
    ),
  })
  if (written.length > 0) await settleChange(store, true)
}

/** Sets a limit at run time. It takes precedence over what the code declares until it is removed. */
async function setLimit(store: Store, target: LimitTarget, rules: QueueRules, by: string | null): Promise<void> {
  checkTarget(target)
  checkRules(target, rules)
  const [changed] =
    'kind' in target && target.key !== undefined && target.key !== '*'
      ? await store.contend(changeKeyLimit, {
          kind: target.kind,
          key: checkedLimitKey(target.kind, target.key),
          rules: JSON.stringify(rules),
          by,
        })
      : await store.contend(changeLimiter, {
          ...placeOf(target),
          set: JSON.stringify(partsOf(target, rules)),
          unset: [],
          by,
        })
  await settleChange(store, changed?.is_new ?? false)
}

/** Removes what was set at run time; what the code declares applies again. */
async function removeLimit(store: Store, target: LimitTarget, by: string | null): Promise<void> {
  checkTarget(target)
  if ('kind' in target && target.key !== undefined && target.key !== '*') {
    await store.contend(removeKeyLimit, { kind: target.kind, key: target.key })
    return settleChange(store, false)
  }
  const [changed] = await store.contend(changeLimiter, {
    ...placeOf(target),
    set: '{}',
    unset: 'queue' in target ? ['whole', 'fair', 'weights'] : [target.key === '*' ? 'each' : 'whole'],
    by,
  })
  await settleChange(store, changed?.is_new ?? false)
}

/** Sends queued jobs to the gates of a limit that has just been set. The reaper goes on if this process dies. */
async function settleChange(store: Store, isNew: boolean): Promise<void> {
  await store.contend(dropEmptyLimiters, {})
  let cursor: AdoptionCursor | undefined = isNew ? startOfJobs : undefined
  while (cursor) {
    const [next]: Adopted[] = await store.run(adoptJobs, {
      ...cursor,
      isAll: false,
      most: adoptedAtOnce,
      beganMs: null,
    })
    cursor = next?.is_end === false ? next : undefined
  }
}

function placeOf(target: LimitTarget): { scope: 'kind' | 'queue'; name: string } {
  return 'queue' in target ? { scope: 'queue', name: target.queue } : { scope: 'kind', name: target.kind }
}

function partsOf(target: LimitTarget, rules: QueueRules): Record<string, unknown> {
  if ('kind' in target) return { [target.key === '*' ? 'each' : 'whole']: rulesOf(rules) }
  const { fair, weights } = rules
  const hasRules = rules.concurrency !== undefined || rules.rate !== undefined
  return {
    ...(hasRules && { whole: rulesOf(rules) }),
    ...(fair !== undefined && { fair }),
    ...(weights && { weights }),
  }
}

function rulesOf({ concurrency, rate }: LimitRules): LimitRules {
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(rate && { rate: { limit: rate.limit, perMs: rate.perMs } }),
  }
}

function checkTarget(target: LimitTarget): void {
  const { queue, kind, key } = (target ?? {}) as { queue?: unknown; kind?: unknown; key?: unknown }
  if ((queue === undefined) === (kind === undefined) || (queue !== undefined && key !== undefined))
    refuse('A limit is on { queue }, { kind } or { kind, key }; pass one of them.')
  if (!isName(queue ?? kind))
    refuse(
      `The ${queue === undefined ? 'kind' : 'queue'} of a limit must be ${nameForm}, not ${JSON.stringify(queue ?? kind)}.`,
    )
  if (key !== undefined && key !== '*') checkedLimitKey(kind as string, key)
}

const known = new Set(['concurrency', 'rate', 'fair', 'weights'])

function checkRules(target: LimitTarget, rules: QueueRules): void {
  const names = typeof rules === 'object' && rules !== null ? Object.keys(rules) : []
  const other = names.find((name) => !known.has(name) || ('kind' in target && (name === 'fair' || name === 'weights')))
  if (other)
    refuse(
      `A limit on a ${'kind' in target ? 'kind' : 'queue'} has no ${other}; it has concurrency and rate${'kind' in target ? '' : ', fair and weights'}.`,
    )
  if (names.length === 0) refuse('A limit needs concurrency or rate; to end it, remove it.')
  const problem = rulesProblem(rules)
  if (problem) refuse(`A limit cannot have ${problem}.`)
  if (rules.fair !== undefined && typeof rules.fair !== 'boolean') refuse('fair must be true or false.')
  for (const [tenant, weight] of Object.entries(rules.weights ?? {}))
    if (!isName(tenant) || !(Number.isFinite(weight) && weight >= 0.01 && weight <= 100))
      refuse(
        `The weight of tenant ${JSON.stringify(tenant)} must be a number from 0.01 to 100, not ${JSON.stringify(weight)}.`,
      )
}

function refuse(message: string): never {
  throw new HoldfastError('option_invalid', message)
}
