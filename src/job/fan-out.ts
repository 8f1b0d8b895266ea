import type { AnyJob, Backoff, Schema, StageContext } from './define.ts'
import type { JobId } from './id.ts'
import type { FinalState } from './machine.ts'
import type { Stored } from './stored.ts'

/** Items, however they come: all at once, or one after the other. */
export type Items<Item> = Iterable<Item> | AsyncIterable<Item>

/** How many failed items a fan-out tolerates: that many (a number says the same as `{ count }`), or that share of all. */
export type Tolerance = number | { readonly count: number } | { readonly share: number }

/** What the handler of an item is given. */
export interface ItemContext<Item = unknown, Input = unknown> extends StageContext<Item, unknown> {
  /** The job that the item belongs to. Asked of the database once per job and process, and only if a handler wants it. */
  parent(): Promise<{ readonly id: JobId; readonly input: Input }>
}

/** What runs for one item, with retries and a time-out of its own. */
export interface Each<Item, Part, Input = unknown> {
  readonly run: (ctx: ItemContext<Item, Input>, item: Item) => Part | Promise<Part>
  readonly retries?: number
  readonly timeoutMs?: number
  readonly backoff?: Backoff
}

/** How the items of a fan-out ended, in numbers. */
export interface Summary {
  readonly total: number
  readonly succeeded: number
  readonly failed: number
  readonly cancelled: number
  /** Why the producer gave up, if it threw after it had given items, time and again: there may be fewer of them than were meant. */
  readonly error?: { readonly code: string; readonly message: string }
}

/** How one item ended. */
export interface ItemResult<Item, Part> {
  readonly id: JobId
  readonly key: string
  /** Its place among the items, from 0. */
  readonly position: number
  readonly state: FinalState
  readonly item: Stored<Item>
  readonly output: Stored<Part> | null
  readonly error: { code: string; message: string } | null
}

/** A stage that fans out: items run on any worker, and the join runs once after the last of them. */
export interface FanOut<Input, Earlier, Output, Item, Part> {
  /** Gives the items. May stream them: they are stored in batches, never all in memory. */
  readonly fanOut: (ctx: StageContext<Input, Earlier>, input: Input) => Items<Item> | Promise<Items<Item>>
  /** What an item must look like. */
  readonly item?: Schema<Item>
  /** What tells items apart, so that a producer that died half-way adds none twice. Default: their position. */
  readonly key?: (item: Item, position: number) => string
  /** Runs per item: a function, a function with retries and a time-out of its own, or another kind (which may fan out itself). */
  readonly each:
    | ((ctx: ItemContext<Item, Input>, item: Item) => Part | Promise<Part>)
    | Each<Item, Part, Input>
    | AnyJob
  /** Runs once after the last item; its output is the stage's. Without it, the summary is. */
  readonly join?: (
    ctx: StageContext<Input, Earlier>,
    summary: Summary,
    results: AsyncIterable<ItemResult<Item, Part>>,
  ) => Output | Promise<Output>
  /** How many failed items make a partial result rather than a failed one. Default: none. Past it, the rest is cancelled at once. */
  readonly tolerate?: Tolerance
  /** How long all items together may take. */
  readonly expiresMs?: number
}

/** Whether all items are processed. `unknown` is no answer, and never to be taken for one: ask the ledger. */
export function isComplete(counts: { total: number | null; settled: number | null }): true | false | 'unknown' {
  if (counts.total === null || counts.settled === null || counts.settled < 0 || counts.total < 0) return 'unknown'
  return counts.settled >= counts.total
}

/** A threshold as it is stored: a count or a share, or neither if nothing is tolerated. */
export function thresholdOf(tolerate: Tolerance | undefined): { count: number | null; share: number | null } {
  if (typeof tolerate === 'number') return { count: tolerate, share: null }
  const { count = null, share = null } = (tolerate ?? {}) as { count?: number; share?: number }
  return { count, share }
}

/** What is wrong with a threshold, if anything. */
export function tolerateProblem(tolerate: Tolerance): string | undefined {
  const { count, share } = (typeof tolerate === 'number' ? { count: tolerate } : (tolerate ?? {})) as {
    count?: unknown
    share?: unknown
  }
  if ((count === undefined) === (share === undefined))
    return 'whose `tolerate` must be a number of items, { count } or { share }.'
  if (count !== undefined && !(Number.isInteger(count) && (count as number) >= 0))
    return `that tolerates ${count} failed items; use a whole number from 0, or { share } for a share of all.`
  if (share !== undefined && !(typeof share === 'number' && share >= 0 && share <= 1))
    return `with tolerate.share ${share}; use a number from 0 to 1.`
  return undefined
}
