// Sends what is due. The invariant: a delivery is pending until its outcome is written, and a pending one comes due by itself.
//
// Any number of processes send. A claim moves next_at to when the claim ends, and raises tries, which is the fence of whoever claimed
// it. A process that dies, at whatever moment, leaves a row that the next claim finds. So a receiver may get an event twice, always
// under the same id and with the same bytes; it never misses one.
import { setMaxListeners } from 'node:events'
import { messageOf } from '../errors/errors.ts'
import type { Wakeups } from '../events/wakeups.ts'
import { backoffMs } from '../job/backoff.ts'
import { group } from '../service/group.ts'
import { loop, type Service, within } from '../service/service.ts'
import { runBatch, type Told } from '../store/batch.ts'
import type { Store } from '../store/store.ts'
import { type ClaimedDelivery, claimDeliveries, oldestDue } from './claim.sql.ts'
import { type SwitchedOff, type Tried, writeTries } from './delivery.sql.ts'
import type { Lanes } from './lanes.ts'
import { switchedOff } from './plan.sql.ts'
import type { Poster, PostResult } from './post.ts'
import { requestOf, sendingOf } from './request.ts'
import { beginDelivery, endDelivery } from './span.ts'

/** What a sender needs. */
export interface SenderParts {
  store: Store
  wakeups: Wakeups
  poster: Poster
  /** What is in flight in this process, tests included. */
  lanes: Lanes
  /** The key that secrets are sealed with. */
  key: Buffer | null
  userAgent: string
  timeoutMs: number
  giveUpMs: number
  /** The wait after the first failure; it grows threefold with each. */
  backoffBaseMs: number
  pollMs: number
  news: SenderNews
}

/** What a sender tells of. */
export interface SenderNews {
  ended(outcome: 'delivered' | 'retry' | 'dead', delivery: ClaimedDelivery, error: string | null): void
  /** An outcome that was not written, because another sender has the delivery by now. */
  refused(delivery: ClaimedDelivery): void
  switchedOff(endpoint: SwitchedOff): void
  oldest(lateMs: number): void
  trouble(error: unknown): void
}

/** A sender. `wake` says that there may be something to send. */
export interface Sender extends Service {
  wake(): void
}

/** How many deliveries one process sends at once. */
export const mostInFlight = 512
/** The wait before the next lanes of a tenant that has very many are looked at. */
const furtherMs = 20
/** How much longer than a try a claim lasts. */
export const claimSlackMs = 5_000
/** How long those in flight may take to end when the sender stops. */
const graceMs = 2_000
const lookEveryMs = 5_000
const backoff = { maxMs: 14_400_000, factor: 3 }

interface Ended {
  row: ClaimedDelivery
  tried: Tried
}

/** Makes a sender. */
export function makeSender(parts: SenderParts): Sender {
  const { store, news, lanes } = parts
  const inFlight = new Set<Promise<void>>()
  let leaving = new AbortController()
  let cursors = new Map<string, string>()
  let looking: Promise<void> | undefined
  let lookedMs = Number.NEGATIVE_INFINITY
  let unhear: (() => Promise<void>) | undefined

  const outcomes = group<Ended, void>({
    most: 200,
    lanes: 2,
    async write(ended) {
      await write(parts, ended)
      return ended.map(() => undefined)
    },
  })

  async function carry(row: ClaimedDelivery, clock: Clock): Promise<void> {
    lanes.begin(row.tenant, row.lane)
    let ms: number | null = null
    try {
      const tried = await send(parts, row, clock, leaving.signal)
      ms = tried.ms
      await outcomes.add({ row, tried })
    } catch (error) {
      // what was not written comes due again when the claim ends
      news.trouble(error)
    } finally {
      lanes.end(row.tenant, row.lane, ms)
      sending.wake()
    }
  }

  async function turn(): Promise<number> {
    lookAtOldest()
    const room = lanes.room()
    if (room.limit === 0) return parts.pollMs
    const walked = { cursorTenants: [...cursors.keys()], cursors: [...cursors.values()] }
    const answer = await store.run(claimDeliveries, { ...room, ...walked, claimMs: parts.timeoutMs + claimSlackMs })
    const heardMs = performance.now()
    const rows = answer.filter((row) => row.id !== null)
    for (const row of rows) {
      const carried = carry(row, () => row.now_ms + performance.now() - heardMs)
      inFlight.add(carried)
      void carried.then(() => inFlight.delete(carried))
    }
    cursors = new Map([
      // a tenant without room was not looked at, and goes on from where it is
      ...[...cursors].filter(([tenant]) => room.tenantMosts[room.tenants.indexOf(tenant)] === 0),
      ...answer.flatMap((row) => (row.id === null ? Object.entries(row.further ?? {}) : [])),
    ])
    if (rows.length > 0) return 0
    return cursors.size > 0 ? Math.min(furtherMs, parts.pollMs) : parts.pollMs
  }

  /** Beside the claims, not before them: it walks every lane of every tenant. */
  function lookAtOldest(): void {
    if (looking || performance.now() - lookedMs < lookEveryMs) return
    lookedMs = performance.now()
    looking = store
      .run(oldestDue, {})
      .then(([oldest]) => news.oldest(oldest?.late_ms ?? 0), news.trouble)
      .finally(() => {
        looking = undefined
      })
  }

  const sending = loop({ turn, onError: news.trouble })
  return {
    wake: sending.wake,
    async start() {
      if (unhear) return
      leaving = new AbortController()
      // as many as are in flight listen, and that is no leak
      setMaxListeners(mostInFlight + 1, leaving.signal)
      unhear = parts.wakeups.hear(sending.wake)
      await sending.start()
    },
    async stop() {
      await sending.stop()
      if (inFlight.size > 0 && !(await within(graceMs, Promise.all(inFlight)))) leaving.abort()
      await Promise.all(inFlight)
      await outcomes.idle()
      await looking
      await unhear?.()
      unhear = undefined
    },
  }
}

/** The time by the clock of the database, as of a claim, and what has passed since. */
type Clock = () => number

async function send(parts: SenderParts, row: ClaimedDelivery, clock: Clock, signal: AbortSignal): Promise<Tried> {
  if (row.is_off) return failed(parts, row, 'permanent', switchedOff)
  const sending = sendingOf(row)
  if (typeof sending === 'string') return failed(parts, row, 'permanent', sending)
  const span = beginDelivery(row, sending.url)
  const traced = span ? { ...sending, trace: span.traceparent } : sending
  try {
    const { key, userAgent } = parts
    const post = () => parts.poster.post(requestOf(traced, { key, userAgent, atMs: clock() }), signal)
    const result = await (span ? span.run(post) : post())
    endDelivery(span, result)
    return triedOf(parts, row, result)
  } catch (error) {
    span?.end({ error: messageOf(error) })
    if (signal.aborted) return failed(parts, row, 'released', '')
    // such as a secret that this process can't unseal: another one may, or this one with another key
    parts.news.trouble(error)
    return failed(parts, row, 'retry', messageOf(error))
  }
}

function waitAfter({ failures }: ClaimedDelivery, { backoffBaseMs: baseMs }: SenderParts): number {
  return backoffMs(failures + 1, { ...backoff, baseMs })
}

function failed(parts: SenderParts, row: ClaimedDelivery, outcome: Tried['outcome'], error: string): Tried {
  const { id, tries } = row
  const delayMs = waitAfter(row, parts)
  return { id, tries, outcome, status: null, error, excerpt: null, ms: null, delayMs, leastMs: 0 }
}

function triedOf(parts: SenderParts, row: ClaimedDelivery, result: PostResult): Tried {
  const { id, tries } = row
  return {
    id,
    tries,
    outcome: result.kind,
    status: result.status ?? null,
    error: result.kind === 'delivered' ? null : result.reason,
    excerpt: result.kind === 'delivered' ? null : (result.excerpt ?? null),
    ms: result.ms,
    delayMs: waitAfter(row, parts),
    leastMs: result.kind === 'retry' ? (result.retryAfterMs ?? 0) : 0,
  }
}

async function write({ store, giveUpMs, news }: SenderParts, ended: Ended[]): Promise<void> {
  const off: SwitchedOff[] = []
  const told = await runBatch(store, {
    items: ended,
    async run(runner, some) {
      const rows = await runner.run(writeTries, { tried: some.map(({ tried }) => tried), giveUpMs })
      off.push(...(rows[0]?.off ?? []))
      const states = new Map(rows.map(({ id, state }) => [id, state]))
      return some.map(({ row }) => states.get(row.id))
    },
  })
  for (const [index, { row, tried }] of ended.entries()) {
    const one = told[index] as Told<string | undefined>
    if (one.is !== 'done') {
      // what was not written comes due again when the claim ends
      news.trouble(one.error)
      continue
    }
    const state = one.answer
    if (state === undefined) news.refused(row)
    else if (tried.outcome !== 'released')
      news.ended(state === 'pending' ? 'retry' : (state as 'delivered' | 'dead'), row, tried.error)
  }
  for (const endpoint of off) news.switchedOff(endpoint)
}
