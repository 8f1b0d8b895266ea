/**
 * What remote workers write about their attempts.
 *
 * The invariant: a session writes only about attempts that it holds, although it may name any. An attempt belongs to one session from its
 * claim to its end, so it is enough to ask for the holder first and to write with the fence then. The same question answers what the stage
 * and its failures are, which decide how the attempt goes on; so no server has to remember anything about a session.
 *
 * An outcome may come twice, because its answer was lost. The log knows who settled which attempt, and how: the second is told the same.
 */
import type { Config } from '../config/config.ts'
import type { Fence, HeldFence } from '../job/id.ts'
import { announces } from '../job/machine.ts'
import { group } from '../service/group.ts'
import type { Outcome, Settled } from '../settle/outcome.ts'
import { failureOf, parkedOf } from '../settle/park.ts'
import { recordRefusals } from '../settle/settle.sql.ts'
import type { Settler } from '../settle/settle.ts'
import { isPassing } from '../store/connection.ts'
import type { Store } from '../store/store.ts'
import { fenceOfHeld } from './claim.sql.ts'
import { earlierWrites, type HeldRemoteRow, heldAttempts, outputRefused, type RemoteRow } from './remote.sql.ts'
import { jobErrorOf, type RemoteOutcome, refuse } from './remote-given.ts'
import { rulesOf } from './remote-kinds.ts'
import { afterFailure, afterSuccess, encodeOutput, type Rules } from './rules.ts'

/** What happens to the attempts of remote workers, for whoever logs and counts. */
export interface RemoteNews {
  settled(attempt: { fence: Fence; kind: string; stage: string }, outcome: Outcome): void
  refused(fences: Fence[], write: string): void
  trouble(error: unknown): void
}

/** An outcome, and the fence that it came with. */
interface Told {
  fence: Fence
  entry: RemoteOutcome
}

/** Settles for the remote workers of all sessions that this server serves. */
export interface RemoteSettling {
  settle(session: RemoteRow, outcomes: Told[]): Promise<Settled[]>
  /** Which of these attempts the session holds, each at its place. */
  holders(session: RemoteRow, fences: Fence[]): Promise<(HeldRemoteRow | undefined)[]>
  /** Keeps refused writes, unless the session guessed. */
  refused(session: RemoteRow, fences: Fence[], write: string): Promise<void>
  giveBack(fences: HeldFence[]): Promise<void>
}

/** Which events say that an outcome was written already. */
const eventsOf: Record<RemoteOutcome['outcome'], (string | null)[]> = {
  succeeded: [announces('finish'), announces('advance'), outputRefused],
  failed: [announces('fail'), announces('retry')],
  released: [announces('release')],
}

const keyOf = ({ id, attempt }: { id: string; attempt: number }) => `${id} ${attempt}`

/** Makes what settles for remote workers. Questions and outcomes that come at the same time share a statement. */
export function makeRemoteSettling(parts: {
  store: Store
  config: Config
  settler: Settler
  news: RemoteNews
}): RemoteSettling {
  const { store, config, settler, news } = parts
  const asked = group({ most: config.batchSize, lanes: 2, write: findHolders })

  async function findHolders(all: { fence: Fence; sessionId: number }[]): Promise<(HeldRemoteRow | undefined)[]> {
    const rows = await store.run(heldAttempts, claimedBy(all))
    const held = new Map(rows.map((row) => [`${row.session_id} ${keyOf(row)}`, row]))
    return all.map(({ fence, sessionId }) => held.get(`${sessionId} ${keyOf(fence)}`))
  }

  const holders = (session: RemoteRow, fences: Fence[]) =>
    Promise.all(fences.map((fence) => asked.add({ fence, sessionId: session.id })))

  async function settle(session: RemoteRow, outcomes: Told[]): Promise<Settled[]> {
    for (const { entry } of outcomes) checkOutcome(entry)
    const held = await holders(
      session,
      outcomes.map(({ fence }) => fence),
    )
    const answers = await Promise.all(
      outcomes.map(({ fence, entry }, index) => settleOne(session, fence, entry, held[index])),
    )
    // one that was lost in the writing may have been overtaken by its own twin
    const lost = outcomes.filter((_, index) => answers[index] !== 'settled')
    const unknown = new Set(outcomes.filter((_, index) => answers[index] === undefined))
    const earlier = await settledBefore(session, lost, unknown)
    return outcomes.map((one, index) => (answers[index] === 'settled' || earlier.has(one) ? 'settled' : 'lease_lost'))
  }

  async function settleOne(
    session: RemoteRow,
    fence: Fence,
    entry: RemoteOutcome,
    row: HeldRemoteRow | undefined,
  ): Promise<Settled | undefined> {
    const rules = row && rulesOf(session.remote, row)
    if (!rules) return undefined
    const outcome = outcomeOf(config, rules, entry)
    const mine = fenceOfHeld(row)
    const settled = await write(mine, outcome).catch((error) => writeRefused(mine, { rules, outcome, error }))
    if (settled === 'settled') news.settled({ fence, kind: row.kind, stage: rules.stageName }, outcome)
    return settled
  }

  const write = (fence: HeldFence, outcome: Outcome) => settler.settle({ fence, outcome })

  /** Postgres can't hold the outcome itself. Trying again would not help, so the attempt fails with the reason. */
  function writeRefused(
    fence: HeldFence,
    { rules, outcome, error }: { rules: Rules; outcome: Outcome; error: unknown },
  ): Promise<Settled> {
    if (isPassing(error)) throw error
    news.trouble(error)
    if (outcome.move === 'fail') return write(fence, parkedOf(outcome, error))
    return write(fence, failureOf(rules.stageName, rules.isOptional, error)).catch((again) => {
      if (isPassing(again)) throw again
      return write(fence, parkedOf(outcome, again))
    })
  }

  /** Which of these outcomes this session has written before. Others are refused; of those nobody has recorded yet, that is recorded. */
  async function settledBefore(session: RemoteRow, lost: Told[], unrecorded: ReadonlySet<Told>): Promise<Set<Told>> {
    if (lost.length === 0) return new Set()
    const known = await store.run(earlierWrites, claimedBy(lost.map(({ fence }) => ({ fence, sessionId: session.id }))))
    const types = new Map(known.map((row) => [keyOf(row), row.types]))
    const isBefore = ({ fence, entry }: Told) =>
      types.get(keyOf(fence))?.some((type) => eventsOf[entry.outcome].includes(type)) === true
    const late = lost.filter((one) => unrecorded.has(one) && !isBefore(one) && types.has(keyOf(one.fence)))
    for (const word of new Set(late.map(({ entry }) => entry.outcome))) {
      const same = late.filter(({ entry }) => entry.outcome === word).map(({ fence }) => fence)
      await record(session, same, word)
    }
    return new Set(lost.filter(isBefore))
  }

  async function refused(session: RemoteRow, fences: Fence[], write: string): Promise<void> {
    if (fences.length === 0) return
    const known = await store.run(earlierWrites, claimedBy(fences.map((fence) => ({ fence, sessionId: session.id }))))
    const there = new Set(known.map(keyOf))
    await record(
      session,
      fences.filter((fence) => there.has(keyOf(fence))),
      write,
    )
  }

  async function record(session: RemoteRow, fences: Fence[], write: string): Promise<void> {
    if (fences.length === 0) return
    news.refused(fences, write)
    // the refusal itself is what counts; its record is for diagnosis, and may be lost with the connection
    await store.run(recordRefusals, { fences, sessionId: session.id, write }).catch(news.trouble)
  }

  return {
    settle,
    holders,
    refused,
    async giveBack(fences) {
      await Promise.all(fences.map((fence) => write(fence, { move: 'release' })))
    },
  }
}

function claimedBy(all: { fence: Fence; sessionId: number }[]) {
  return {
    ids: all.map(({ fence }) => fence.id),
    attempts: all.map(({ fence }) => fence.attempt),
    sessionIds: all.map(({ sessionId }) => sessionId),
  }
}

function checkOutcome(entry: RemoteOutcome): void {
  if (entry.outcome === 'failed') jobErrorOf(entry.error)
  else if (!Object.hasOwn(eventsOf, entry.outcome))
    refuse(
      `outcome must be one of ${Object.keys(eventsOf).join(', ')}, not ${JSON.stringify(entry.outcome) ?? 'undefined'}`,
    )
}

function outcomeOf(config: Config, rules: Rules, entry: RemoteOutcome): Outcome {
  if (entry.outcome === 'released') return { move: 'release' }
  if (entry.outcome === 'failed') return afterFailure(rules, jobErrorOf(entry.error))
  const encoded = encodeOutput(config, rules, entry.output)
  return 'error' in encoded ? afterFailure(rules, encoded.error) : afterSuccess(rules, encoded.output)
}
