/**
 * What remote workers write about their attempts.
 *
 * The invariant: a session writes only about attempts that it holds, although a request may name any. An attempt belongs to one session from
 * its claim to its end, so it is enough to look up the holder first and then write with the fence. The same lookup returns the stage and its
 * failures, which decide what happens next, so no server has to remember anything about a session.
 *
 * An outcome may arrive twice, because its answer was lost. The event log records which session settled which attempt, and how, so the second
 * one gets the same answer.
 */
import type { Config } from '../config/config.ts'
import { longestHoldMs } from '../errors/errors.ts'
import type { Fence, HeldFence } from '../job/id.ts'
import { announces } from '../job/machine.ts'
import { delayRule, isDelay, type Wait } from '../job/wait.ts'
import { isPassing } from '../postgres/connection.ts'
import type { Store } from '../postgres/store.ts'
import { type Group, group } from '../service/group.ts'
import type { Outcome, Settled } from '../settle/outcome.ts'
import { failureOf, parkedOf } from '../settle/park.ts'
import { recordRefusals } from '../settle/settle.sql.ts'
import type { Settler } from '../settle/settle.ts'
import { fenceOfHeld } from '../worker/claim.sql.ts'
import { afterFailure, afterSuccess, encodeOutput, type Rules } from '../worker/rules.ts'
import { type Waited, waitForSignal } from '../worker/wait.ts'
import { rulesOf } from './kinds.ts'
import { earlierWrites, type HeldRemoteRow, heldAttempts, outputRefused, type RemoteRow } from './remote.sql.ts'
import { jobErrorOf, type RemoteOutcome, refuse, wholeOf } from './validate.ts'

/** What happens to the attempts of remote workers, for logs and metrics. */
export interface RemoteObserver {
  settled(attempt: { fence: Fence; kind: string; stage: string }, outcome: Outcome): void
  refused(fences: Fence[], write: string): void
  onError(error: unknown): void
}

/** An outcome, with its fence. */
interface Told {
  fence: Fence
  entry: RemoteOutcome
}

/** The events that show that an outcome has been written already. */
const eventsOf: Record<RemoteOutcome['outcome'], (string | null)[]> = {
  succeeded: [announces('finish'), announces('advance'), outputRefused],
  failed: [announces('fail'), announces('retry')],
  released: [announces('release')],
  snoozed: [announces('snooze')],
}

const keyOf = ({ id, attempt }: { id: string; attempt: number }) => `${id} ${attempt}`

/** What it takes to settle for remote workers. */
export interface RemoteSettlingParts {
  store: Store
  config: Config
  settler: Settler
  observer: RemoteObserver
}

/** Settles for the remote workers of all sessions that this server serves. Requests that arrive at the same time share statements. */
export class RemoteSettling {
  readonly #parts: RemoteSettlingParts
  readonly #lookups: Group<Claimed, HeldRemoteRow | undefined>

  constructor(parts: RemoteSettlingParts) {
    this.#parts = parts
    const { store, config } = parts
    this.#lookups = group({ most: config.batchSize, lanes: 2, write: (claimed) => findHolders(store, claimed) })
  }

  /** Writes how attempts ended. Throws if an outcome is invalid, before any of them is written. */
  async settle(session: RemoteRow, outcomes: Told[]): Promise<Settled[]> {
    for (const { entry } of outcomes) checkOutcome(entry)
    const held = await this.holders(
      session,
      outcomes.map(({ fence }) => fence),
    )
    const answers = await Promise.all(outcomes.map((told, index) => this.#settleOne(session, told, held[index])))
    // an outcome whose lease was lost while it was written may have been overtaken by its own duplicate
    const lost = outcomes.filter((_, index) => answers[index] !== 'settled')
    const unrecorded = new Set(outcomes.filter((_, index) => answers[index] === undefined))
    const earlier = await this.#settledBefore(session, lost, unrecorded)
    return outcomes.map((one, index) => (answers[index] === 'settled' || earlier.has(one) ? 'settled' : 'lease_lost'))
  }

  /** Which of these attempts the session holds, in the same order. */
  holders(session: RemoteRow, fences: Fence[]): Promise<(HeldRemoteRow | undefined)[]> {
    return Promise.all(fences.map((fence) => this.#lookups.add({ fence, sessionId: session.id })))
  }

  /** Records refused writes, except about jobs that this session cannot know. */
  async refused(session: RemoteRow, fences: Fence[], write: string): Promise<void> {
    if (fences.length === 0) return
    const known = new Set((await this.#earlierWrites(session, fences)).map(keyOf))
    await this.#record(
      session,
      fences.filter((fence) => known.has(keyOf(fence))),
      write,
    )
  }

  /** Releases attempts. */
  async giveBack(fences: HeldFence[]): Promise<void> {
    await Promise.all(fences.map((fence) => this.#write(fence, { move: 'release' })))
  }

  async #settleOne(
    session: RemoteRow,
    { fence, entry }: Told,
    row: HeldRemoteRow | undefined,
  ): Promise<Settled | undefined> {
    const rules = row && rulesOf(session.remote, row)
    if (!rules) return undefined
    const { config, observer } = this.#parts
    const outcome = outcomeOf(config, rules, entry)
    const mine = fenceOfHeld(row)
    const settled = await this.#write(mine, outcome).catch((error) =>
      this.#writeRefused(mine, { rules, outcome, error }),
    )
    if (settled === 'settled') observer.settled({ fence, kind: row.kind, stage: rules.stageName }, outcome)
    return settled
  }

  /** Looks for the signal of an attempt whose stage waits, and writes what follows. No remote worker is needed for that. */
  async settleWait(session: RemoteRow, row: HeldRemoteRow, wait: Wait): Promise<void> {
    const { store, config, observer } = this.#parts
    const rules = rulesOf(session.remote, row)
    if (!rules) return
    const fence = fenceOfHeld(row)
    const waited = await waitForSignal(store, { fence, stage: row.stage, stageName: rules.stageName, wait })
    const outcome = outcomeOfWait(config, rules, waited)
    const settled = await this.#write(fence, outcome).catch((error) =>
      this.#writeRefused(fence, { rules, outcome, error }),
    )
    if (settled === 'settled') observer.settled({ fence, kind: row.kind, stage: rules.stageName }, outcome)
  }

  #write(fence: HeldFence, outcome: Outcome): Promise<Settled> {
    return this.#parts.settler.settle({ fence, outcome })
  }

  /**
   * Postgres rejects the outcome itself. Writing it again would not help, so the attempt fails with the reason. If that is rejected too, the
   * job is parked with its outcome.
   */
  #writeRefused(
    fence: HeldFence,
    { rules, outcome, error }: { rules: Rules; outcome: Outcome; error: unknown },
  ): Promise<Settled> {
    if (isPassing(error)) throw error
    this.#parts.observer.onError(error)
    if (outcome.move === 'fail') return this.#write(fence, parkedOf(outcome, error))
    return this.#write(fence, failureOf(rules.stageName, rules.isOptional, error)).catch((again) => {
      if (isPassing(again)) throw again
      return this.#write(fence, parkedOf(outcome, again))
    })
  }

  /** Which of these outcomes this session has written before. The others were refused; refusals not yet on record are recorded. */
  async #settledBefore(session: RemoteRow, lost: Told[], unrecorded: ReadonlySet<Told>): Promise<Set<Told>> {
    if (lost.length === 0) return new Set()
    const known = await this.#earlierWrites(
      session,
      lost.map(({ fence }) => fence),
    )
    const types = new Map(known.map((row) => [keyOf(row), row.types]))
    const isBefore = ({ fence, entry }: Told) =>
      types.get(keyOf(fence))?.some((type) => eventsOf[entry.outcome].includes(type)) === true
    const late = lost.filter((one) => unrecorded.has(one) && !isBefore(one) && types.has(keyOf(one.fence)))
    for (const word of new Set(late.map(({ entry }) => entry.outcome))) {
      const same = late.filter(({ entry }) => entry.outcome === word).map(({ fence }) => fence)
      await this.#record(session, same, word)
    }
    return new Set(lost.filter(isBefore))
  }

  #earlierWrites({ id: sessionId }: RemoteRow, fences: Fence[]) {
    return this.#parts.store.run(earlierWrites, claimedBy(fences.map((fence) => ({ fence, sessionId }))))
  }

  async #record(session: RemoteRow, fences: Fence[], write: string): Promise<void> {
    if (fences.length === 0) return
    const { store, observer } = this.#parts
    observer.refused(fences, write)
    // the write is refused either way; the record is only for diagnosis, and may be lost with the connection
    await store.run(recordRefusals, { fences, sessionId: session.id, write }).catch(observer.onError)
  }
}

/** An attempt that a session says it holds. */
interface Claimed {
  fence: Fence
  sessionId: number
}

async function findHolders(store: Store, claimed: Claimed[]): Promise<(HeldRemoteRow | undefined)[]> {
  const rows = await store.run(heldAttempts, claimedBy(claimed))
  const held = new Map(rows.map((row) => [`${row.session_id} ${keyOf(row)}`, row]))
  return claimed.map(({ fence, sessionId }) => held.get(`${sessionId} ${keyOf(fence)}`))
}

function claimedBy(all: Claimed[]) {
  return {
    ids: all.map(({ fence }) => fence.id),
    attempts: all.map(({ fence }) => fence.attempt),
    sessionIds: all.map(({ sessionId }) => sessionId),
  }
}

function checkOutcome(entry: RemoteOutcome): void {
  if (entry.outcome === 'failed') jobErrorOf(entry.error)
  else if (entry.outcome === 'snoozed' && !isDelay(entry.delayMs))
    refuse(`delayMs must be ${delayRule}, not ${JSON.stringify(entry.delayMs) ?? 'undefined'}`)
  else if (entry.outcome === 'released' && entry.retryAfterMs !== undefined)
    wholeOf('retryAfterMs', entry.retryAfterMs, { min: 0, max: longestHoldMs })
  else if (!Object.hasOwn(eventsOf, entry.outcome))
    refuse(
      `outcome must be one of ${Object.keys(eventsOf).join(', ')}, not ${JSON.stringify(entry.outcome) ?? 'undefined'}`,
    )
}

function outcomeOfWait(config: Config, rules: Rules, waited: Waited): Outcome {
  if ('outcome' in waited) return waited.outcome
  if ('error' in waited) return afterFailure(rules, waited.error)
  const encoded = encodeOutput(config, rules, waited.output === null ? null : JSON.parse(waited.output))
  return 'error' in encoded ? afterFailure(rules, encoded.error) : afterSuccess(rules, encoded.output)
}

function outcomeOf(config: Config, rules: Rules, entry: RemoteOutcome): Outcome {
  if (entry.outcome === 'released')
    return { move: 'release', ...(entry.retryAfterMs !== undefined && { holdMs: entry.retryAfterMs }) }
  if (entry.outcome === 'snoozed') return { move: 'snooze', delayMs: entry.delayMs }
  if (entry.outcome === 'failed') return afterFailure(rules, jobErrorOf(entry.error))
  const encoded = encodeOutput(config, rules, entry.output)
  return 'error' in encoded ? afterFailure(rules, encoded.error) : afterSuccess(rules, encoded.output)
}
