/**
 * Remote workers: they talk to a server, and the server talks to the database.
 *
 * A remote worker has a session like any other worker, but no database connection and so no lock: only its lease shows that it is alive
 * (rung three of the ladder). The row of the session holds everything that a server needs to serve it, so any server can serve any request.
 * A server that dies loses nothing but the answers it was about to give. The worker then asks again: heartbeats and outcomes may arrive
 * twice, and attempts whose claim was never answered are given back once a heartbeat does not list them.
 */
import type { Config } from '../config/config.ts'
import type { Fence } from '../job/id.ts'
import type { Store } from '../postgres/store.ts'
import type { Settled } from '../settle/outcome.ts'
import { makeSettler } from '../settle/settle.ts'
import { type RemoteAttempt, RemoteClaimer } from './claim.ts'
import { RemoteClaims } from './claims.ts'
import { closeRemote, endSessionsOf } from './close.ts'
import { renewSession } from './heartbeat.ts'
import type { RemoteKind } from './kinds.ts'
import { makeOpener } from './open.ts'
import { checkReports, writeReports } from './progress.ts'
import { findSession } from './sessions.ts'
import { type RemoteObserver, RemoteSettling } from './settle.ts'
import { entriesOf, type RemoteOutcome, type RemoteReport } from './validate.ts'
import { makeWakes } from './wakeups.ts'

/** What a remote worker says about itself. */
export interface OpenRemote {
  /** The kinds that it handles. */
  kinds: readonly RemoteKind[]
  /** The host it runs on, shown with its session. */
  host?: string | undefined
  /** Its pid, shown with its session. */
  pid?: number | undefined
  /** How many attempts it runs at once, shown with its session. */
  concurrency?: number | undefined
  /** How long it counts as alive after its last heartbeat. Default: the `leaseMs` setting. */
  leaseMs?: number | undefined
  /** The only tenant whose jobs it may claim. Default: all. */
  tenant?: string | null | undefined
  /** Who opens it. Only the same owner may use it. */
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

/** Who makes a request. Without an owner, every session can be used. */
export interface RemoteScope {
  /** Must be the owner that opened the session. */
  owner?: string | null | undefined
}

/** An attempt that the worker no longer holds, and why. */
export interface LostAttempt {
  id: string
  attempt: number
  reason: 'cancelled' | 'lease_lost'
}

/** What a server offers to remote workers. */
export interface Remote {
  /** Opens a session: one lease for everything that it claims. */
  open(worker: OpenRemote): Promise<OpenedRemote>
  /** Renews the lease, and says which of these attempts the worker has lost. Throws session_ended. */
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
  /** Reports the progress of attempts, and adds lines to their timelines. */
  progress(id: number, reports: readonly RemoteReport[], scope?: RemoteScope): Promise<('written' | 'lease_lost')[]>
  /** Writes how attempts ended. An outcome may be sent again if its answer was lost. */
  settle(id: number, outcomes: readonly RemoteOutcome[], scope?: RemoteScope): Promise<Settled[]>
  /** Gives attempts back without using up a retry. */
  release(id: number, fences: readonly Fence[], scope?: RemoteScope): Promise<Settled[]>
  /** Gives back everything that the session still holds, and ends it. */
  close(id: number, scope?: RemoteScope): Promise<void>
  /** Ends all sessions of an owner, and gives back what they hold. Returns how many there were. */
  endOf(owner: string): Promise<number>
}

/** What it takes to serve remote workers. */
export interface RemoteParts {
  store: Store
  url: string
  config: Config
  version: string
  observer: RemoteObserver
}

/** How long an outcome may wait for a database that does not answer. After that, the worker asks again. */
const patienceMs = 10_000

/** Makes what serves remote workers. `stop` ends everything that waits. */
export function makeRemote(parts: RemoteParts): Remote & { stop(): Promise<void> } {
  const { store, url, config, observer } = parts
  const stopping = new AbortController()
  const settler = makeSettler({
    store,
    batchSize: config.batchSize,
    givenUp: stopping.signal,
    patienceMs,
    onRefused: observer.refused,
    onError: observer.onError,
  })
  const settling = new RemoteSettling({ store, config, settler, observer })
  const wakes = makeWakes({ url, isPooled: config.pooled, onError: observer.onError })
  const claimer = new RemoteClaimer({ store, config, wakes, settling, onError: observer.onError })
  const claims = new RemoteClaims(store, claimer)

  async function settle(id: number, outcomes: readonly RemoteOutcome[], scope: RemoteScope = {}): Promise<Settled[]> {
    const entries = entriesOf('outcomes', outcomes)
    return settling.settle(await findSession(store, id, scope), entries)
  }

  return {
    open: makeOpener(parts),
    beat: (id, held, scope) => renewSession({ store, settling }, id, held, scope),
    claim: (id, how = {}, scope = {}) => claims.claim(id, how, scope),
    settle,
    async progress(id, reports, scope = {}) {
      const entries = entriesOf('reports', reports)
      checkReports(entries)
      return writeReports({ store, settling }, await findSession(store, id, scope), entries)
    },
    async release(id, fences, scope = {}) {
      const released = entriesOf('fences', fences).map(({ fence }) => ({ ...fence, outcome: 'released' as const }))
      return settle(id, released, scope)
    },
    close: (id, scope) => closeRemote({ store, settling, claims }, id, scope),
    endOf: (owner) => endSessionsOf({ store, settling, claims }, owner),
    async stop() {
      await claims.endOf(() => true)
      stopping.abort()
      await Promise.all([wakes.stop(), settler.idle()])
    },
  }
}
