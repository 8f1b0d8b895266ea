/**
 * Remote workers: they speak to a server, and the server to the database.
 *
 * A remote worker has a session like any other, but no connection, so no lock: only its lease says that it lives (rung three of the ladder).
 * Whatever a server must know to serve it stands in the session's row, so any server can serve any request. A server that dies takes nothing
 * with it but the answers under way. The worker asks again: heartbeats and outcomes may come twice, and attempts whose claim was answered
 * in vain are given back when a heartbeat does not list them.
 */
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { Fence } from '../job/id.ts'
import type { Settled } from '../settle/outcome.ts'
import { makeSettler } from '../settle/settle.ts'
import type { Store } from '../store/store.ts'
import { fenceOfHeld, unheldAttempts } from './claim.sql.ts'
import { endOwned, findRemote, forgottenAttempts, lostByRemote, type RemoteRow } from './remote.sql.ts'
import { makeRemoteClaimer, type RemoteAttempt } from './remote-claim.ts'
import { entriesOf, longestWaitMs, mostAtOnce, type RemoteOutcome, type RemoteReport, wholeOf } from './remote-given.ts'
import type { RemoteKind } from './remote-kinds.ts'
import { makeOpener } from './remote-open.ts'
import { checkReports, writeReports } from './remote-report.ts'
import { makeRemoteSettling, type RemoteNews } from './remote-settle.ts'
import { makeWakes } from './remote-wakes.ts'
import { beat, closeSession, comeBack } from './session.sql.ts'

/** What a remote worker says about itself. */
export interface OpenRemote {
  kinds: readonly RemoteKind[]
  host?: string | undefined
  pid?: number | undefined
  /** How many attempts it runs at once, for whoever looks on. */
  concurrency?: number | undefined
  /** How long it is taken for alive after its last heartbeat. Default: the setting. */
  leaseMs?: number | undefined
  /** The only tenant whose jobs it may claim. Default: all. */
  tenant?: string | null | undefined
  /** Whoever opened it, and nobody else, may use it. */
  owner?: string | null | undefined
}

/** The session of a remote worker. */
export interface OpenedRemote {
  id: number
  leaseMs: number
  /** How often to send a heartbeat. */
  heartbeatMs: number
  leaseUntil: Date
}

/** Who asks: without an owner, every session can be used. */
export interface RemoteScope {
  owner?: string | null | undefined
}

/** Why an attempt is no longer the worker's. */
export interface LostAttempt {
  id: string
  attempt: number
  reason: 'cancelled' | 'lease_lost'
}

/** What a server offers to remote workers. */
export interface Remote {
  /** Opens a session: a lease over all that it will claim. */
  open(worker: OpenRemote): Promise<OpenedRemote>
  /** Renews the lease, and says which of the attempts that the worker holds it has lost. Throws session_ended. */
  beat(
    id: number,
    held: { held: readonly Fence[] },
    scope?: RemoteScope,
  ): Promise<{ leaseUntil: Date; lost: LostAttempt[] }>
  /** Claims up to `most` jobs, and waits up to `waitMs` for the first. Throws session_ended. */
  claim(
    id: number,
    how?: { most?: number | undefined; waitMs?: number | undefined; signal?: AbortSignal },
    scope?: RemoteScope,
  ): Promise<RemoteAttempt[]>
  /** Says how far attempts are, and writes lines into their timelines. */
  progress(id: number, reports: readonly RemoteReport[], scope?: RemoteScope): Promise<('written' | 'lease_lost')[]>
  /** Writes how attempts ended. The same outcome may be sent again if its answer was lost. */
  settle(id: number, outcomes: readonly RemoteOutcome[], scope?: RemoteScope): Promise<Settled[]>
  /** Gives attempts back unharmed. */
  release(id: number, fences: readonly Fence[], scope?: RemoteScope): Promise<Settled[]>
  /** Gives back whatever the session still holds, and ends it. */
  close(id: number, scope?: RemoteScope): Promise<void>
  /** Ends all sessions of an owner at once, and gives back what they hold; says how many there were. */
  endOf(owner: string): Promise<number>
}

/** What remote workers need of the process that serves them. */
export interface RemoteParts {
  store: Store
  url: string
  config: Config
  version: string
  news: RemoteNews
}

/** How long an outcome may wait for a database that does not answer: the worker asks again. */
const patienceMs = 10_000

/** Makes what serves remote workers. `stop` ends all that waits. */
export function makeRemote(parts: RemoteParts): Remote & { stop(): Promise<void> } {
  const { store, config, news } = parts
  const stopping = new AbortController()
  const underWay = new Set<{ id: number; stop: AbortController; done: Promise<unknown> }>()
  const settler = makeSettler({
    store,
    batchSize: config.batchSize,
    givenUp: stopping.signal,
    patienceMs,
    onRefused: news.refused,
    onTrouble: news.trouble,
  })
  const settling = makeRemoteSettling({ store, config, settler, news })
  const wakes = makeWakes({ url: parts.url, isPooled: config.pooled, onTrouble: news.trouble })
  const claimRows = makeRemoteClaimer({
    store,
    config,
    wakes,
    stillOpen: (id) => living(id, {}),
    giveBack: (rows) => settling.giveBack(rows.map(fenceOfHeld)),
    onTrouble: news.trouble,
  })

  async function find(id: number, { owner }: RemoteScope = {}): Promise<RemoteRow> {
    const [row] = Number.isSafeInteger(id) && id > 0 ? await store.run(findRemote, { id }) : []
    if (row && (owner === undefined || owner === null || row.owner === owner)) return row
    throw new HoldfastError('session_not_found', 'There is no such session of a remote worker.')
  }

  async function living(id: number, scope: RemoteScope): Promise<RemoteRow> {
    const session = await find(id, scope)
    if (session.is_ended) ended()
    return session
  }

  async function beatOnce(id: number, given: { held: readonly Fence[] }, scope: RemoteScope = {}) {
    const mine = entriesOf('held', given?.held).map(({ fence }) => fence)
    const session = await find(id, scope)
    const { leaseMs } = session.remote
    const [renewed] = await store.run(beat, { id, isLocked: false, leaseMs })
    if (!renewed) {
      await store.run(comeBack, { id })
      await settling.refused(session, mine, 'heartbeat')
      return ended()
    }
    const held = { sessionId: id, ids: mine.map((fence) => fence.id), attempts: mine.map((fence) => fence.attempt) }
    const lost = mine.length > 0 ? await store.run(lostByRemote, { ...held, tenant: session.tenant }) : []
    await releaseForgotten(session, held)
    return {
      leaseUntil: renewed.lease_until,
      lost: lost.map(({ id, attempt, state }): LostAttempt => {
        return { id, attempt, reason: state === 'cancelled' ? 'cancelled' : 'lease_lost' }
      }),
    }
  }

  /**
   * Gives back what was claimed in the session's name and never reached its worker. An answer may be on its way while a heartbeat is, so
   * only what was claimed more than a lease ago counts: a heartbeat that took longer has missed its purpose anyway.
   */
  async function releaseForgotten(
    session: RemoteRow,
    held: { sessionId: number; ids: string[]; attempts: number[] },
  ): Promise<void> {
    const forgotten = await store.run(forgottenAttempts, { ...held, olderThanMs: session.remote.leaseMs })
    await settling.giveBack(forgotten.map(fenceOfHeld))
  }

  async function claim(
    id: number,
    { most = 1, waitMs = 0, signal }: Parameters<Remote['claim']>[1] & object = {},
    scope: RemoteScope = {},
  ): Promise<RemoteAttempt[]> {
    wholeOf('most', most, { min: 1, max: mostAtOnce })
    wholeOf('waitMs', waitMs, { min: 0, max: longestWaitMs })
    const stop = new AbortController()
    const ending = signal ? AbortSignal.any([stop.signal, signal]) : stop.signal
    const done = living(id, scope).then((session) => claimRows(session, { most, waitMs, signal: ending }))
    // from the first question on: who stops must not leave one behind that still asks
    const mine = { id, stop, done }
    underWay.add(mine)
    return done.finally(() => underWay.delete(mine))
  }

  /** Ends claims of this process that wait, and what they have claimed is given back. */
  async function endClaims(ending: (claim: { id: number }) => boolean): Promise<void> {
    const claims = [...underWay].filter(ending)
    for (const { stop } of claims) stop.abort()
    await Promise.allSettled(claims.map(({ done }) => done))
  }

  async function settle(id: number, outcomes: readonly RemoteOutcome[], scope: RemoteScope = {}): Promise<Settled[]> {
    const entries = entriesOf('outcomes', outcomes)
    return settling.settle(await find(id, scope), entries)
  }

  async function close(id: number, scope: RemoteScope = {}): Promise<void> {
    await find(id, scope)
    await endClaims((claim) => claim.id === id)
    await giveBackAll(id)
    await store.run(closeSession, { id })
    // what another server has claimed meanwhile in its name
    await giveBackAll(id)
  }

  async function giveBackAll(sessionId: number): Promise<void> {
    const held = await store.run(unheldAttempts, { sessionId, leaseIds: [] })
    await settling.giveBack(held.map(fenceOfHeld))
  }

  /** First the rows, in one statement: a claim or a heartbeat that any server is asked for from here on is refused. */
  async function endOf(owner: string): Promise<number> {
    const ended = new Set((await store.run(endOwned, { owner })).map(({ id }) => id))
    await endClaims((claim) => ended.has(claim.id))
    for (const id of ended) await giveBackAll(id)
    return ended.size
  }

  return {
    open: makeOpener(parts),
    beat: beatOnce,
    claim,
    settle,
    close,
    endOf,
    async progress(id, reports, scope = {}) {
      const entries = entriesOf('reports', reports)
      checkReports(entries)
      return writeReports({ store, settling }, await find(id, scope), entries)
    },
    release: (id, fences, scope = {}) =>
      settle(
        id,
        entriesOf('fences', fences).map(({ fence }) => ({ ...fence, outcome: 'released' as const })),
        scope,
      ),
    async stop() {
      await endClaims(() => true)
      stopping.abort()
      await Promise.all([wakes.stop(), settler.idle()])
    },
  }
}

function ended(): never {
  throw new HoldfastError(
    'session_ended',
    'The session was ended, and all its attempts were given away. Abort them, and open a new session.',
  )
}
