import type { Config } from '../config/config.ts'
import type { Store } from '../store/store.ts'
import { type Lane, lanesOf, rotated } from './lanes.ts'
import {
  claimForRemote,
  claimSuspectForRemote,
  holdSession,
  type RemoteClaimedRow,
  type RemoteRow,
} from './remote.sql.ts'
import { jobOf, stageOf, stagesBefore } from './remote-kinds.ts'
import type { Place, Wakes } from './remote-wakes.ts'
import { wantWake } from './session.sql.ts'
import { endDrain, takeDrain, waitingRemoteSuspect } from './suspect.sql.ts'
import { suspectEveryMs, suspectPatienceMs } from './suspects.ts'

/** An attempt, as a remote worker is given it. */
export interface RemoteAttempt {
  id: string
  attempt: number
  kind: string
  queue: string
  tenant: string
  /** The name of the stage to run. */
  stage: string
  input: unknown
  /** What the earlier stages returned, by their names. */
  outputs: Record<string, unknown>
  /** How long the stage may take. */
  timeoutMs: number
  /** When the attempt is taken for hung and given to another worker. */
  deadlineAt: Date
  /** How often this stage has failed before. */
  failures: number
  submittedAt: Date
  /** The trace that the submit was part of. */
  traceparent: string | null
}

/** What a waiting claim needs. */
export interface RemoteClaimParts {
  store: Store
  config: Config
  wakes: Wakes
  /** Throws if the session has ended or is not this caller's. */
  stillOpen: (id: number) => Promise<unknown>
  /** Gives back what nobody waits for any more. */
  giveBack: (rows: RemoteClaimedRow[]) => Promise<unknown>
  onTrouble: (error: unknown) => void
}

/** After news it may be sooner: a revival is news, and what was revived may be a suspect. */
const suspectAfterNewsMs = 100
const mostRemembered = 10_000
/** How many polls of the first in line those behind it let pass before they look themselves. */
const lookEvery = 10

interface Look {
  lanes: Lane[]
  most: number
}

/** Makes what claims for remote workers, with waiting. */
export function makeRemoteClaimer(parts: RemoteClaimParts) {
  const { store, config, wakes } = parts
  // when this process last looked for suspects in a session's name: a look takes a transaction, and suspects are few
  const suspectsAtMs = new Map<number, number>()
  let turns = 0

  /** Claims at once, or as soon as there is something, within `waitMs`. Empty: there was nothing, or the signal fired. */
  return async function claim(
    session: RemoteRow,
    { most, waitMs, signal }: { most: number; waitMs: number; signal: AbortSignal },
  ): Promise<RemoteAttempt[]> {
    const lanes = lanesOf(session.remote.kinds.map(jobOf), [])
    const place = wakes.join(JSON.stringify([session.tenant, lanes]))
    try {
      const rows = await lookUntil(session, { lanes, most, place, untilMs: performance.now() + waitMs, signal })
      return await keep(session, rows, signal)
    } finally {
      place.leave()
    }
  }

  async function lookUntil(
    session: RemoteRow,
    { lanes, most, place, untilMs, signal }: Look & { place: Place; untilMs: number; signal: AbortSignal },
  ): Promise<RemoteClaimedRow[]> {
    let isWakeWanted = session.wants_wake
    let heard = wakes.count()
    for (let turn = 0; ; turn++) {
      const since = wakes.count()
      const rows = await look(session, { lanes, most, isNews: since !== heard })
      heard = since
      // the jobs are claimed: whatever goes wrong from here on must not keep their worker from hearing of them
      if (rows.length > 0 && isWakeWanted)
        await store.run(wantWake, { id: session.id, isWanted: false }).catch(parts.onTrouble)
      const leftMs = untilMs - performance.now()
      if (rows.length > 0 || leftMs <= 0 || signal.aborted) return rows
      if (isWakeWanted) await place.wait(since, Math.min(leftMs, napMs(turn, place)), signal)
      // a submit that came between the look and the wish woke nobody, so look once more
      else await store.run(wantWake, { id: session.id, isWanted: true })
      isWakeWanted = true
      if (signal.aborted) return []
      await parts.stillOpen(session.id)
    }
  }

  async function look(
    session: RemoteRow,
    { lanes, most, isNews }: Look & { isNews: boolean },
  ): Promise<RemoteClaimedRow[]> {
    turns += 1
    const { id: sessionId, tenant, remote } = session
    const params = { sessionId, tenant, lanes: rotated(lanes, turns), deadlinesMs: remote.deadlinesMs }
    const suspects = isSuspectTurn(sessionId, isNews) ? await lookForSuspect({ ...params, most: 1 }) : []
    return suspects.length > 0 ? suspects : store.run(claimForRemote, { ...params, most })
  }

  function isSuspectTurn(sessionId: number, isNews: boolean): boolean {
    const nowMs = performance.now()
    const everyMs = isNews ? suspectAfterNewsMs : suspectEveryMs
    if (nowMs - (suspectsAtMs.get(sessionId) ?? Number.NEGATIVE_INFINITY) < everyMs) return false
    if (suspectsAtMs.size >= mostRemembered) suspectsAtMs.clear()
    suspectsAtMs.set(sessionId, nowMs)
    return true
  }

  /** One at a time: whoever else claims for this session waits until this is committed, and then sees it. */
  async function lookForSuspect(
    params: Parameters<typeof claimSuspectForRemote.build>[0],
  ): Promise<RemoteClaimedRow[]> {
    return store.transaction(async (runner) => {
      const { sessionId, lanes, tenant } = params
      const [held] = await runner.run(holdSession, { id: sessionId })
      const rows = held ? await runner.run(claimSuspectForRemote, params) : []
      const [waiting] = rows.length === 0 ? await runner.run(waitingRemoteSuspect, { lanes, tenant }) : []
      if (waiting && waiting.waited_ms >= suspectPatienceMs(config))
        await runner.run(takeDrain, { ...waiting, sessionId })
      else await runner.run(endDrain, { sessionId })
      return rows
    })
  }

  /** Whoever asked may have gone while the database looked. */
  async function keep(session: RemoteRow, rows: RemoteClaimedRow[], signal: AbortSignal): Promise<RemoteAttempt[]> {
    if (!signal.aborted) return rows.toSorted((a, b) => a.priority - b.priority).map((row) => attemptOf(session, row))
    if (rows.length > 0) await parts.giveBack(rows)
    return []
  }

  function napMs(turn: number, place: Place): number {
    const patienceMs = wakes.isConnected() ? config.pollMs : Math.min(config.pollMs, 250)
    if (!place.isFirst()) return lookEvery * config.pollMs
    // a submit whose snapshot is older than our wish wakes nobody: the first looks after falling idle come sooner
    return turn <= 4 ? Math.min(patienceMs, 10 * 3 ** turn) : patienceMs
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
