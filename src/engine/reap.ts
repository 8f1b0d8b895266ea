import { forgetBulk } from '../bulk/bulk.sql.ts'
import { carryingOn } from '../bulk/duty.ts'
import { messageOf } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import type { Statement } from '../postgres/sql.ts'
import { forgetOldKinds } from '../reaper/duties/forget-kinds.ts'
import { forgetUnique } from '../reaper/duties/forget-unique-keys.ts'
import { pruning } from '../reaper/duties/prune.ts'
import { duties, logDuties, ownerDuties } from '../reaper/duties.ts'
import { type Duty, type DutyReport, type Orphan, report } from '../reaper/duty.ts'
import { makeReaper, type Reaper, type ReaperObserver, runSweep, type Sweep } from '../reaper/reaper.ts'
import { type EndedRow, endChildSessions } from '../reaper/session.sql.ts'
import type { Ticker } from '../schedule/ticker.ts'
import { forgetSlots } from '../schedule/unfinished.sql.ts'
import type { Service } from '../service/service.ts'
import { forgetDeliveries } from '../webhooks/deliveries.sql.ts'
import { forgetSnapshots } from '../why/facts.sql.ts'
import { bulkObserver } from './bulk.ts'
import { withWebhooks } from './deliver.ts'
import { patientMs } from './liveness.ts'
import { logError } from './log-error.ts'
import type { EngineParts } from './parts.ts'
import type { Running } from './running.ts'
import { makeEngineTicker } from './schedules.ts'

/** A running reaper. */
export interface Reaping {
  /** The current term if it is leader; null if another process is. */
  term(): number | null
  /** Stops the reaper; if it is leader, another process takes over. */
  stop(): Promise<void>
}

/** Starts a reaper, and webhooks with it. */
export async function reap(parts: EngineParts, running: Running): Promise<Reaping> {
  const reaper = makeEngineReaper(parts, { declares: false })
  const stop = await running.begin(withWebhooks(parts, reaper))
  return { term: () => reaper.term(), stop }
}

/** Makes the reaper of an engine: it is leader, or waits to become it. */
export function makeEngineReaper(
  parts: EngineParts,
  { declares }: { declares: boolean },
): Service & Pick<Reaper, 'term'> {
  const { store, aside, owners, config } = parts
  // a call that re-arms a barrier while it is being marked waits for that, and must not time out first
  const timeoutMs = Math.min(config.ownerTimeoutMs, config.statementTimeoutMs / 2)
  const log = logDuties({ retentionMs: config.eventRetentionMs, capMs: config.eventCapMs })
  const outside = {
    duties: [
      ...ownerDuties({ store: aside, owners, timeoutMs }),
      ...log,
      pruning(config),
      forgetting('forgetDeliveries', forgetDeliveries, config.deliveryRetentionMs),
      forgetting('forgetSnapshots', forgetSnapshots, config.eventRetentionMs),
      forgetting('forgetBulk', forgetBulk, config.eventRetentionMs),
      forgetOldKinds(config.kindRetentionMs),
      forgetting('forgetSlots', forgetSlots, config.scheduleHistoryMs),
      forgetUnique,
      carryingOn({ store, config, observer: bulkObserver(parts) }),
    ],
    observer: outsideObserver(parts),
  }
  const reaper = makeReaper({ store, config, observer: reaperObserver(parts), outside })
  return watched(
    parts,
    reaper,
    makeEngineTicker(parts, () => reaper.term() !== null, declares),
  )
}

/** The same reaper with a ticker, whose loops are watched while they run. */
function watched(parts: EngineParts, reaper: Reaper, ticker: Ticker): Service & Pick<Reaper, 'term'> {
  const { vitals } = parts
  let watching: (() => void)[] = []
  return {
    term: () => reaper.term(),
    async start() {
      await reaper.start()
      await ticker.start()
      if (watching.length > 0) return
      watching = [
        vitals.watch('sweep loop', patientMs(parts), () => reaper.quiet().sweeps),
        vitals.watch('leader loop', patientMs(parts), () => reaper.quiet().leads),
        vitals.watch('schedule loop', patientMs(parts), () => ticker.quietMs()),
      ]
    },
    async stop() {
      for (const unwatch of watching) unwatch()
      watching = []
      await Promise.all([ticker.stop(), reaper.stop()])
    },
  }
}

const batch = 500

/** A duty that removes old rows. */
function forgetting(
  name: string,
  statement: Statement<{ olderThanMs: number; limit: number }, unknown>,
  olderThanMs: number,
): Duty {
  return {
    name,
    everyMs: 60_000,
    async run(store) {
      const gone = await store.run(statement, { olderThanMs, limit: batch })
      return report({ isFull: gone.length === batch })
    },
  }
}

/**
 * Ends the sessions of a child process that has exited, and revives its jobs at once. Any process may do this, leader or not: the row
 * decides.
 */
export async function reclaimChild(
  parts: EngineParts,
  child: { supervisor: string; pid: number; exit?: string },
): Promise<void> {
  const observer = reaperObserver(parts)
  const ended = await parts.store.run(endChildSessions, { ...child, exit: child.exit ?? null })
  if (ended.length === 0) return
  for (const session of ended) tellEnded(parts, session)
  await runSweep(
    parts.store,
    duties.filter(({ name }) => name === 'reviveAbandoned'),
    observer,
    () => true,
  )
}

/** Reports on the duties outside of sweeps, without affecting the metrics of sweeps. */
function outsideObserver(parts: EngineParts): ReaperObserver {
  return {
    elected() {},
    deposed() {},
    done: (_duty, report) => tellReport(parts, report),
    swept: (sweep) => tellSweep(parts, sweep),
    onError: (error, duty) => logDutyError(parts, error, duty),
  }
}

function reaperObserver(parts: EngineParts): ReaperObserver {
  const { log, metrics } = parts
  let oldestMs = 0
  return {
    elected(term) {
      metrics.set('holdfast_leader_term', term)
      log.info({ term }, 'became leader')
    },
    deposed(term, why) {
      metrics.set('holdfast_leader_term', 0)
      metrics.set('holdfast_prune_overdue_seconds', 0)
      log.info({ term, why }, 'stepped down')
    },
    done(duty, report) {
      tellReport(parts, report)
      oldestMs = Math.max(oldestMs, ...orphansOf(report).map(({ lost_ms }) => lost_ms))
      // the other duties know nothing about stranded kinds, and must not reset the number
      if (duty === 'reportStranded') metrics.set('holdfast_stranded_kinds', report.stranded.length)
    },
    swept(sweep) {
      metrics.observe('holdfast_sweep_seconds', {}, sweep.sweepMs / 1000)
      metrics.set('holdfast_oldest_orphan_seconds', oldestMs / 1000)
      oldestMs = 0
      tellSweep(parts, sweep)
    },
    onError: (error, duty) => logDutyError(parts, error, duty),
  }
}

function tellSweep({ log }: EngineParts, { sweepMs, recovered, failed, isSystemic }: Sweep): void {
  if (isSystemic) log.error({ failed }, 'systemic failure: the sweep recovered nothing and had errors')
  else if (recovered + failed > 0) log.warn({ recovered, failed, sweepMs: Math.round(sweepMs) }, 'sweep')
}

function logDutyError({ log, metrics }: EngineParts, error: unknown, duty: string | undefined): void {
  if (duty) metrics.add('holdfast_sweep_failures_total', { duty })
  logError(log, 'reaper', error, duty ? { duty } : {})
}

/** All orphans that a duty found, moved or not: those that cannot be moved are the ones that grow old. */
function orphansOf({ revived, quarantined, failed, held }: DutyReport): { lost_ms: number }[] {
  return [...revived, ...quarantined, ...failed, ...held]
}

function tellReport(parts: EngineParts, report: DutyReport): void {
  const { log, metrics } = parts
  for (const session of report.ended) tellEnded(parts, session)
  if (report.pruned) {
    metrics.add('holdfast_jobs_removed_total', {}, report.pruned.removed)
    metrics.set('holdfast_prune_overdue_seconds', report.pruned.overdueMs / 1000)
  }
  for (const orphan of report.revived) tellOrphan(parts, 'revive', orphan)
  for (const orphan of report.quarantined) tellOrphan(parts, 'quarantine', orphan)
  for (const { orphan, ...facts } of report.healed) {
    metrics.add('holdfast_revivals_total', { orphan, rung: 'barrier' })
    log.warn({ orphan, ...facts }, 'repaired a barrier')
  }
  for (const { id, error, orphan, isBarrier } of report.failed) {
    metrics.add('holdfast_orphan_failures_total')
    const names = isBarrier ? { barrier: id, ...(orphan ? { orphan } : {}) } : { job: id }
    log.error({ ...names, reason: messageOf(error) }, 'could not recover an orphan')
  }
  for (const { id, error, isBarrier } of report.held)
    log.debug({ [isBarrier ? 'barrier' : 'job']: id, reason: messageOf(error) }, 'left an orphan for a later sweep')
  for (const { isError, ...facts } of report.skipped)
    log[isError ? 'error' : 'debug'](facts, 'left a barrier unchanged')
  for (const { isError, message, facts } of report.notes) log[isError ? 'error' : 'info'](facts, message)
  for (const { queue, kind, waiting_ms } of report.stranded)
    log.warn(
      { queue, kind, waitingMs: Math.round(waiting_ms) },
      'jobs are waiting for a kind that no running worker handles',
    )
}

function tellEnded({ log, metrics }: EngineParts, { id, rung, host, pid, lost_ms }: EndedRow): void {
  metrics.add('holdfast_sessions_ended_total', { rung })
  log.warn({ session: id, rung, host, pid, lostMs: Math.round(lost_ms) }, 'ended a dead session')
}

function tellOrphan({ jobLog, listeners, metrics }: EngineParts, move: 'revive' | 'quarantine', row: Orphan): void {
  const isRevived = move === 'revive'
  metrics.add(isRevived ? 'holdfast_revivals_total' : 'holdfast_quarantines_total', {
    orphan: row.orphan,
    rung: row.rung,
  })
  listeners.tell(move, { id: row.id as JobId, kind: row.kind, stage: null, attempt: row.attempt, error: null })
  metrics.observe('holdfast_recovery_seconds', { rung: row.rung }, row.lost_ms / 1000)
  jobLog.warn(
    {
      job: row.id,
      kind: row.kind,
      attempt: row.attempt,
      orphan: row.orphan,
      rung: row.rung,
      lostMs: Math.round(row.lost_ms),
    },
    isRevived ? 'revived' : 'quarantined',
  )
}
