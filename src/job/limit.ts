import { HoldfastError } from '../errors/errors.ts'
import { encodeStorable } from './storable.ts'

/** How many jobs may start in a span of time. */
export interface Rate {
  /** How many. A full span's worth may start at once. */
  limit: number
  /** The span of time. */
  perMs: number
}

/** Limits: how many jobs may run at the same time, and how many may start in a span of time. */
export interface LimitRules {
  /** How many jobs may be held by workers at the same time. 0 holds all of them back. */
  concurrency?: number
  /** How many jobs may start in a span of time. */
  rate?: Rate
}

/** The limit of a kind, as its definition declares it. */
export interface KindLimit<Input = unknown> extends LimitRules {
  /**
   * What the limit counts by: a function of the input, or the path of a property such as `customer.id`. Each key then has the limit for
   * itself. Without a key, the limit is on all jobs of the kind.
   */
  key?: string | LimitKeyOf<Input>['of']
}

/** A function of the input. Declared as a method, so that a kind without a schema can say what its input looks like. */
interface LimitKeyOf<Input> {
  /** The key of a job with this input. */
  of(input: Input): string | number
}

/** The longest key. */
export const longestLimitKey = 200
const mostSlots = 1_000_000
const longestRateMs = 31 * 86_400_000

/** What is wrong with limits, as the end of a sentence; undefined if nothing is. */
export function rulesProblem({ concurrency, rate }: LimitRules): string | undefined {
  if (concurrency !== undefined && !(Number.isInteger(concurrency) && concurrency >= 0 && concurrency <= mostSlots))
    return `concurrency ${JSON.stringify(concurrency)}; use a whole number from 0 to ${mostSlots}`
  if (rate === undefined) return undefined
  if (typeof rate !== 'object' || rate === null) return `rate ${JSON.stringify(rate)}; use { limit, perMs }`
  if (!(Number.isInteger(rate.limit) && rate.limit >= 1 && rate.limit <= mostSlots))
    return `rate.limit ${JSON.stringify(rate.limit)}; use a whole number from 1 to ${mostSlots}`
  if (!(Number.isFinite(rate.perMs) && rate.perMs >= 1 && rate.perMs <= longestRateMs))
    return `rate.perMs ${JSON.stringify(rate.perMs)}; use milliseconds from 1 to ${longestRateMs} (31 days)`
  const other = Object.keys(rate).find((name) => name !== 'limit' && name !== 'perMs')
  return other && `rate.${other}, which is unknown; use { limit, perMs }`
}

/** What is wrong with the limit of a kind, as the end of a sentence that begins with the kind. */
export function kindLimitProblem(limit: KindLimit<never> | undefined): string | undefined {
  if (limit === undefined) return undefined
  if (typeof limit !== 'object' || limit === null) return 'has a limit that is no object; use { concurrency: 5 }.'
  const other = Object.keys(limit).find((name) => !['key', 'concurrency', 'rate'].includes(name))
  if (other) return `has the unknown option limit.${other}; a limit has key, concurrency and rate.`
  if (limit.concurrency === undefined && limit.rate === undefined)
    return 'has a limit without concurrency and rate; give it one of them.'
  if (limit.key !== undefined && typeof limit.key !== 'function' && !isPath(limit.key))
    return `has limit.key ${JSON.stringify(limit.key)}; use a function of the input, or the path of a property, such as "customer.id".`
  const problem = rulesProblem(limit)
  return problem && `has limit.${problem}.`
}

const isPath = (key: unknown) => typeof key === 'string' && /^[^.\s]+(\.[^.\s]+){0,9}$/.test(key)

/** What the limit of a kind counts a job by; null if it has no key. */
export function limitKeyOf(kind: string, limit: KindLimit<never> | undefined, input: unknown): string | null {
  if (limit?.key === undefined) return null
  const value = typeof limit.key === 'function' ? keyFrom(kind, limit.key, input) : propertyOf(input, limit.key)
  return checkedLimitKey(kind, value)
}

/** A key in its stored form; throws if it can't be one. */
export function checkedLimitKey(kind: string, value: unknown): string {
  const isText = (typeof value === 'string' && value !== '') || (typeof value === 'number' && Number.isFinite(value))
  const text = String(value)
  if (isText && text.length <= longestLimitKey && 'json' in encodeStorable(text, 'key')) return text
  const shown =
    typeof value === 'string' && value.length > 50 ? `a string of ${value.length} characters` : JSON.stringify(value)
  throw new HoldfastError(
    'input_invalid',
    `The limit key of kind ${kind} must be a number or a string of 1 to ${longestLimitKey} characters without NUL, not ${shown}. Check the key of its limit, and the input.`,
  )
}

function keyFrom(kind: string, key: (input: never) => unknown, input: unknown): unknown {
  try {
    return key(input as never)
  } catch (cause) {
    throw new HoldfastError('input_invalid', `The limit key of kind ${kind} cannot be computed from this input.`, {
      cause,
    })
  }
}

function propertyOf(input: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown> | null)?.[name], input)
}
