import type { Config } from '../config/config.ts'
import type { Wait } from '../job/wait.ts'
import { isLocked } from '../postgres/connection.ts'
import type { Store } from '../postgres/store.ts'
import { fenceOfHeld } from '../worker/claim.sql.ts'
import { keyOf, type Lane, lanesOf, rotated } from '../worker/lanes.ts'
import { wantWake } from '../worker/session.sql.ts'
import { endDrain, takeDrain, waitingRemoteSuspect } from '../worker/suspect.sql.ts'
import { suspectEveryMs, suspectPatienceMs } from '../worker/suspects.ts'
import { postponeUnclaimable, type Unclaimable } from '../worker/unclaimable.ts'
import { ApartClaims } from './apart-claims.ts'
import { RemoteGates } from './gates.ts'
import { jobOf, stageOf, stagesBefore } from './kinds.ts'
import {
  claimForRemote,
  claimSuspectForRemote,
  holdSession,
  type RemoteClaim,
  type RemoteClaimedRow,
  type RemoteRow,
} from './remote.sql.ts'
import { findOpenSession } from './sessions.ts'
import type { RemoteSettling } from './settle.ts'
import type { Waiter, Wakes } from './wakeups.ts'

/** An attempt, as a remote worker receives it. */
export interface RemoteAttempt {
  id: string
  attempt: number
  kind: string
  queue: string
  tenant: string
  /** The name of the stage to run. */
  stage: string
  input: unknown
  /** The outputs of the earlier stages, by name. */
  outputs: Record<string, unknown>
  /** How long the stage may take. */
  timeoutMs: number
  /** When the attempt counts as hung and is given to another worker. */
  deadlineAt: Date
  /** How often this stage has failed before. */
  failures: number
  submittedAt: Date
  /** The trace that the submit was part of. */
  traceparent: string | null
}

/** What it takes to claim for remote workers. */
export interface RemoteClaimParts {
  store: Store
  config: Config
  wakes: Wakes
  settling: RemoteSettling
  onError: (error: unknown) => void
}

/** After a wake-up, suspects are looked for sooner: a revival wakes workers, and what was revived may be a suspect. */
const suspectAfterWakeMs = 100
const mostRemembered = 10_000
/** How long a claim of a suspect waits for the row of its session. Other claims for that session take far less. */
const holdSessionMs = 1_000
/** How many polls of the first waiter the others skip before they poll themselves. */
const pollEvery = 10

interface Polling {
  session: RemoteRow
  lanes: Lane[]
  most: number
}

interface Waiting extends Polling {
  waiter: Waiter
  untilMs: number
  signal: AbortSignal
}

/** Claims for remote workers, and waits if there is nothing to claim. */
export class RemoteClaimer {
  readonly #parts: RemoteClaimParts
  /** When this process last looked for suspects for a session. Looking takes a transaction, and suspects are rare. */
  readonly #suspectsAtMs = new Map<number, number>()
  readonly #gates: RemoteGates
  readonly #claims: { suspects: ApartClaims<Lane>; others: ApartClaims<Lane> }
  #polls = 0

  constructor(parts: RemoteClaimParts) {
    this.#parts = parts
    this.#gates = new RemoteGates(parts)
    this.#claims = { suspects: new ApartClaims<Lane>(parts, keyOf), others: new ApartClaims<Lane>(parts, keyOf) }
  }

  /** Claims at once, or as soon as there is something, within `waitMs`. Returns nothing if there was nothing or the signal fired. */
  async claim(
    session: RemoteRow,
    { most, waitMs, signal }: { most: number; waitMs: number; signal: AbortSignal },
  ): Promise<RemoteAttempt[]> {
    const lanes = lanesOf(session.remote.kinds.map(jobOf), [])
    const waiter = this.#parts.wakes.join(JSON.stringify([session.tenant, lanes]))
    try {
      const untilMs = performance.now() + waitMs
      const rows = await this.#pollUntil({ session, lanes, most, waiter, untilMs, signal })
      return await this.#keep(session, rows, signal)
    } finally {
      waiter.leave()
    }
  }

  async #pollUntil({ waiter, untilMs, signal, ...polling }: Waiting): Promise<RemoteClaimedRow[]> {
    const { store, wakes } = this.#parts
    const { session } = polling
    let isWakeWanted = session.wants_wake
    let heard = wakes.count()
    for (let turn = 0; ; turn++) {
      const since = wakes.count()
      const rows = await this.#poll(polling, since !== heard)
      heard = since
      if (rows.length > 0 && isWakeWanted) await this.#endWake(session)
      const leftMs = untilMs - performance.now()
      if (rows.length > 0 || leftMs <= 0 || signal.aborted) return rows
      if (isWakeWanted) await waiter.wait(since, Math.min(leftMs, this.#pauseMs(turn, waiter)), signal)
      // a submit between the poll and this request woke nobody, so poll once more
      else await store.contend(wantWake, { id: session.id, isWanted: true })
      isWakeWanted = true
      if (signal.aborted) return []
      await findOpenSession(store, session.id)
    }
  }

  /** Jobs have been claimed by now, so an error here must not keep them from their worker. */
  async #endWake({ id }: RemoteRow): Promise<void> {
    const { store, onError } = this.#parts
    await store.contend(wantWake, { id, isWanted: false }).catch(onError)
  }

  async #poll({ session, lanes, most }: Polling, isWoken: boolean): Promise<RemoteClaimedRow[]> {
    this.#polls += 1
    const { id: sessionId, tenant, remote } = session
    const params = {
      sessionId,
      tenant,
      lanes: rotated(lanes, this.#polls),
      mostBytes: this.#parts.config.claimMaxBytes,
      deadlinesMs: remote.deadlinesMs,
    }
    const suspects = this.#isTimeForSuspects(sessionId, isWoken) ? await this.#claimSuspect({ ...params, most: 1 }) : []
    const rows = suspects.length > 0 ? suspects : await this.#claimOthers({ ...params, most })
    return this.#withoutWaits(session, rows)
  }

  /** Claims jobs without limits, or jobs at gates. Either may come first, so that neither starves the other. */
  async #claimOthers(params: RemoteClaim): Promise<RemoteClaimedRow[]> {
    const areGatesFirst = Math.random() < 0.5
    const first = areGatesFirst ? await this.#gates.claim(params) : await this.#claimLanes(params)
    if (first.length > 0) return first
    return areGatesFirst ? this.#claimLanes(params) : this.#gates.claim(params)
  }

  #claimLanes(params: RemoteClaim): Promise<RemoteClaimedRow[]> {
    return this.#claims.others.claim({
      lanes: params.lanes,
      claim: (lanes) => this.#parts.store.run(claimForRemote, { ...params, lanes }),
      postpone: (lanes) => postponeUnclaimable(this.#parts, { ...params, lanes }),
      isRetried: true,
    })
  }

  /** Settles attempts at stages that wait for a signal, which need no worker. If that fails, the next heartbeat gives them back. */
  async #withoutWaits(session: RemoteRow, rows: RemoteClaimedRow[]): Promise<RemoteClaimedRow[]> {
    const waits = rows.filter((row) => stageOf(session.remote, row)?.wait)
    if (waits.length === 0) return rows
    const { settling, onError } = this.#parts
    await Promise.all(
      waits.map((row) => settling.settleWait(session, row, stageOf(session.remote, row)?.wait as Wait).catch(onError)),
    )
    return rows.filter((row) => !waits.includes(row))
  }

  #claimSuspect(params: RemoteClaim): Promise<RemoteClaimedRow[]> {
    return this.#claims.suspects.claim({
      lanes: params.lanes,
      claim: (lanes) => this.#pollSuspect({ ...params, lanes }),
      postpone: (lanes) => this.#postponeSuspects({ ...params, lanes }),
      // the next look for suspects is soon enough
      isRetried: false,
    })
  }

  async #postponeSuspects(params: RemoteClaim): Promise<Unclaimable> {
    const free = await postponeUnclaimable(this.#parts, params)
    const gated = await this.#gates.postponeSuspects(params)
    return { postponed: free.postponed + gated.postponed, lanes: [...free.lanes, ...gated.lanes] }
  }

  #isTimeForSuspects(sessionId: number, isWoken: boolean): boolean {
    const nowMs = performance.now()
    const everyMs = isWoken ? suspectAfterWakeMs : suspectEveryMs
    if (nowMs - (this.#suspectsAtMs.get(sessionId) ?? Number.NEGATIVE_INFINITY) < everyMs) return false
    if (this.#suspectsAtMs.size >= mostRemembered) this.#suspectsAtMs.clear()
    this.#suspectsAtMs.set(sessionId, nowMs)
    return true
  }

  /** Claims a suspect. It locks the session, so that other claims for it wait for the commit and then see it. */
  async #pollSuspect(params: RemoteClaim): Promise<RemoteClaimedRow[]> {
    const { store, config } = this.#parts
    // while it locks the session, its jobs can't be revived; with a lock limit, the server ends it soon if this process freezes
    const bounds = { lockMs: holdSessionMs }
    const claimed = store.transaction(async (runner) => {
      const { sessionId, lanes, tenant } = params
      const [held] = await runner.run(holdSession, { id: sessionId })
      const free = held ? await runner.run(claimSuspectForRemote, params) : []
      const rows = held && free.length === 0 ? await this.#gates.claimSuspect(runner, params) : free
      const [waiting] = rows.length === 0 ? await runner.run(waitingRemoteSuspect, { lanes, tenant }) : []
      if (waiting && waiting.waited_ms >= suspectPatienceMs(config))
        await runner.run(takeDrain, { ...waiting, sessionId })
      else await runner.run(endDrain, { sessionId })
      return rows
    }, bounds)
    // a session that another transaction keeps locked gets no suspects for now
    return claimed.catch((error) => (isLocked(error) ? [] : Promise.reject(error)))
  }

  /** Gives the jobs back if the worker went away while they were claimed. */
  async #keep(session: RemoteRow, rows: RemoteClaimedRow[], signal: AbortSignal): Promise<RemoteAttempt[]> {
    if (!signal.aborted) return rows.toSorted((a, b) => a.priority - b.priority).map((row) => attemptOf(session, row))
    if (rows.length > 0) await this.#parts.settling.giveBack(rows.map(fenceOfHeld))
    return []
  }

  #pauseMs(turn: number, waiter: Waiter): number {
    const { pollMs } = this.#parts.config
    if (!waiter.isFirst()) return pollEvery * pollMs
    const usualMs = this.#parts.wakes.isConnected() ? pollMs : Math.min(pollMs, 250)
    // a submit with a snapshot older than our request wakes nobody, so the first polls after falling idle come sooner
    return turn <= 4 ? Math.min(usualMs, 10 * 3 ** turn) : usualMs
  }
}

function attemptOf({ remote }: RemoteRow, row: RemoteClaimedRow): RemoteAttempt {
  const stage = stageOf(remote, row)
  const committed: Record<string, unknown> = row.outputs === null ? {} : JSON.parse(row.outputs)
  return {
    id: row.id,
    attempt: row.attempt,
    kind: row.kind,
    queue: row.queue,
    tenant: row.tenant,
    stage: stage?.name ?? String(row.stage),
    input: row.input === null ? null : JSON.parse(row.input),
    // a stage that returned nothing has no row; its output is null
    outputs: Object.fromEntries(
      stagesBefore(remote, row).map((name) => [name, Object.hasOwn(committed, name) ? committed[name] : null]),
    ),
    timeoutMs: stage?.timeoutMs ?? 0,
    deadlineAt: row.deadline_at,
    failures: row.failures,
    submittedAt: row.submitted_at,
    traceparent: row.trace,
  }
}
