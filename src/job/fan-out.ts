import type { AnyJob, Backoff, Schema, StageContext } from './define.ts'
import type { JobId } from './id.ts'
import type { FinalState } from './machine.ts'
import type { Stored } from './stored.ts'

/** Items: all at once, or one after the other. */
export type Items<Item> = Iterable<Item> | AsyncIterable<Item>

/** How many failed items a fan-out tolerates: a count (a plain number is the same as `{ count }`), or a share of all items. */
export type Tolerance = number | { readonly count: number } | { readonly share: number }

/** The context that the handler of an item receives. */
export interface ItemContext<Item = unknown, Input = unknown> extends StageContext<Item, unknown> {
  /** The job that the item belongs to. It is read from the database once per job and process, and only if a handler asks for it. */
  parent(): Promise<{ readonly id: JobId; readonly input: Input }>
}

/** The handler of one item, with its own retries and timeout. */
export interface Each<Item, Part, Input = unknown> {
  /** The handler of one item. */
  readonly run: (ctx: ItemContext<Item, Input>, item: Item) => Part | Promise<Part>
  /** How many failures of an item are retried. Default: the `retries` setting. */
  readonly retries?: number
  /** How long one attempt at an item may take. Default: the `jobTimeoutMs` setting. */
  readonly timeoutMs?: number
  /** How long to wait before a retry. */
  readonly backoff?: Backoff
}

/** What an item counts as in its fan-out, by the state it ended in. A partial result is usable, so it counts as a success. */
export const countsAs = {
  succeeded: 'succeeded',
  partial: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
} as const satisfies Record<FinalState, string>

/** A counter of a fan-out. */
export type ItemCount = (typeof countsAs)[FinalState]
/** All counters of a fan-out. */
export const itemCounts = [...new Set(Object.values(countsAs))]
/** Those that count against the threshold. */
export const failedCounts = itemCounts.filter((count) => count !== 'succeeded')

/** How many items have ended. */
export function endedItems(counts: Readonly<Record<ItemCount, number>>): number {
  return itemCounts.reduce((sum, count) => sum + counts[count], 0)
}

/** How many items count against the threshold. */
export function failedItems(counts: Readonly<Record<ItemCount, number>>): number {
  return failedCounts.reduce((sum, count) => sum + counts[count], 0)
}

/** How the items of a fan-out ended, in numbers. */
export interface Summary {
  readonly total: number
  readonly succeeded: number
  readonly failed: number
  readonly cancelled: number
  /** The error of the producer, if it kept failing after it had produced items: some items may be missing. */
  readonly error?: { readonly code: string; readonly message: string }
}

/** How one item ended. */
export interface ItemResult<Item, Part> {
  readonly id: JobId
  readonly key: string
  /** Its position among the items, from 0. */
  readonly position: number
  readonly state: FinalState
  readonly item: Stored<Item>
  readonly output: Stored<Part> | null
  readonly error: { code: string; message: string } | null
}

/** A stage that fans out: items run on any worker, and the join runs once after the last of them. */
export interface FanOut<Input, Earlier, Output, Item, Part> {
  /** Returns the items. It may stream them: they are stored in batches and never held in memory all at once. */
  readonly fanOut: (ctx: StageContext<Input, Earlier>, input: Input) => Items<Item> | Promise<Items<Item>>
  /** What an item must look like. */
  readonly item?: Schema<Item>
  /** Identifies an item, so that a producer that dies partway through does not add it twice. Default: their position. */
  readonly key?: (item: Item, position: number) => string
  /** Runs for each item: a function, a function with its own retries and timeout, or another kind (which may fan out itself). */
  readonly each:
    | ((ctx: ItemContext<Item, Input>, item: Item) => Part | Promise<Part>)
    | Each<Item, Part, Input>
    | AnyJob
  /** Runs once after the last item. Its output is the output of the stage; without a join, that is the summary. */
  readonly join?: (
    ctx: StageContext<Input, Earlier>,
    summary: Summary,
    results: AsyncIterable<ItemResult<Item, Part>>,
  ) => Output | Promise<Output>
  /** How many items may fail before the stage fails instead of giving a partial result. Default: none. Beyond that, the remaining items are cancelled at once. */
  readonly tolerate?: Tolerance
  /** How long all items together may take. */
  readonly expiresMs?: number
}

/** Whether all items are processed. `unknown` means neither yes nor no: count the items instead. */
export function isComplete(counts: { total: number | null; settled: number | null }): true | false | 'unknown' {
  if (counts.total === null || counts.settled === null || counts.settled < 0 || counts.total < 0) return 'unknown'
  return counts.settled >= counts.total
}

/** A tolerance as it is stored: a count or a share, or neither if nothing is tolerated. */
export function thresholdOf(tolerate: Tolerance | undefined): { count: number | null; share: number | null } {
  if (typeof tolerate === 'number') return { count: tolerate, share: null }
  const { count = null, share = null } = (tolerate ?? {}) as { count?: number; share?: number }
  return { count, share }
}

/** What is wrong with a tolerance, if anything. */
export function tolerateProblem(tolerate: Tolerance): string | undefined {
  const { count, share } = (typeof tolerate === 'number' ? { count: tolerate } : (tolerate ?? {})) as {
    count?: unknown
    share?: unknown
  }
  if ((count === undefined) === (share === undefined))
    return 'whose `tolerate` must be a number of items, { count } or { share }.'
  if (count !== undefined && !(Number.isInteger(count) && (count as number) >= 0))
    return `that tolerates ${count} failed items; use a non-negative whole number, or { share } for a share of all.`
  if (share !== undefined && !(typeof share === 'number' && share >= 0 && share <= 1))
    return `with tolerate.share ${share}; use a number from 0 to 1.`
  return undefined
}
