import { messageOf } from '../errors/errors.ts'
import { type Duty, type DutyReport, duties, type Orphan } from '../reaper/duties.ts'
import { forgetOldKinds } from '../reaper/kind-duties.ts'
import { logDuties } from '../reaper/log-duties.ts'
import { ownerDuties } from '../reaper/owner-duties.ts'
import { makeReaper, type Reaper, type ReaperNews, runSweep, type Sweep } from '../reaper/reaper.ts'
import { report } from '../reaper/report.ts'
import { type EndedRow, endChildSessions } from '../reaper/session.sql.ts'
import { forgetDeliveries } from '../webhooks/deliveries.sql.ts'
import { forgetSnapshots } from '../why/facts.sql.ts'
import type { EngineParts } from './engine.ts'
import { patientMs } from './patience.ts'
import { tellTrouble } from './trouble.ts'

/** Makes the reaper of an engine: it leads, or waits to. */
export function makeEngineReaper(parts: EngineParts): Reaper {
  const { store, aside, owners, config } = parts
  // whoever arms a barrier while it is marked waits for the mark, and must not give up before it is over
  const timeoutMs = Math.min(config.ownerTimeoutMs, config.statementTimeoutMs / 2)
  const log = logDuties({ retentionMs: config.eventRetentionMs, capMs: config.eventCapMs })
  const outside = {
    duties: [
      ...ownerDuties({ store: aside, owners, timeoutMs }),
      ...log,
      forgetOldDeliveries(config.deliveryRetentionMs),
      forgetOldSnapshots(config.eventRetentionMs),
      forgetOldKinds(config.kindRetentionMs),
    ],
    news: outsideNews(parts),
  }
  return watched(parts, makeReaper({ store, config, news: reaperNews(parts), outside }))
}

/** The same reaper, whose loops are watched while it runs. */
function watched(parts: EngineParts, reaper: Reaper): Reaper {
  const { vitals } = parts
  let watching: (() => void)[] = []
  return {
    ...reaper,
    async start() {
      await reaper.start()
      if (watching.length > 0) return
      watching = [
        vitals.watch('sweep loop', patientMs(parts), () => reaper.quiet().sweeps),
        vitals.watch('leader loop', patientMs(parts), () => reaper.quiet().leads),
      ]
    },
    stop() {
      for (const unwatch of watching) unwatch()
      watching = []
      return reaper.stop()
    },
  }
}

/** A reaper that runs. */
export interface Reaping {
  /** The term in which it leads at this moment; null if another process leads. */
  term(): number | null
  stop(): Promise<void>
}

const batch = 500

function forgetOldDeliveries(olderThanMs: number): Duty {
  return {
    name: 'forgetDeliveries',
    everyMs: 60_000,
    async run(store) {
      const gone = await store.run(forgetDeliveries, { olderThanMs, limit: batch })
      return report({ isFull: gone.length === batch })
    },
  }
}

function forgetOldSnapshots(olderThanMs: number): Duty {
  return {
    name: 'forgetSnapshots',
    everyMs: 60_000,
    async run(store) {
      const gone = await store.run(forgetSnapshots, { olderThanMs, limit: batch })
      return report({ isFull: gone.length === batch })
    },
  }
}

/**
 * Ends the sessions of a child process that was seen to end, and moves its jobs on at once. Any process may do this, leader or not: the
 * row decides.
 */
export async function reclaimChild(
  parts: EngineParts,
  child: { supervisor: string; pid: number; exit?: string },
): Promise<void> {
  const news = reaperNews(parts)
  const ended = await parts.store.run(endChildSessions, { ...child, exit: child.exit ?? null })
  if (ended.length === 0) return
  for (const session of ended) tellEnded(parts, session)
  await runSweep(
    parts.store,
    duties.filter(({ name }) => name === 'reviveAbandoned'),
    news,
    () => true,
  )
}

/** What happens when owners are asked: told like the rest, but not mixed into what the sweeps are measured by. */
function outsideNews(parts: EngineParts): ReaperNews {
  return {
    elected() {},
    deposed() {},
    done: (_duty, report) => tellReport(parts, report),
    swept: (sweep) => tellSweep(parts, sweep),
    trouble: (error, duty) => tellDutyTrouble(parts, error, duty),
  }
}

function reaperNews(parts: EngineParts): ReaperNews {
  const { log, metrics } = parts
  let oldestMs = 0
  return {
    elected(term) {
      metrics.set('holdfast_leader_term', term)
      log.info({ term }, 'leads')
    },
    deposed(term, why) {
      metrics.set('holdfast_leader_term', 0)
      log.info({ term, why }, 'leads no more')
    },
    done(duty, report) {
      tellReport(parts, report)
      oldestMs = Math.max(oldestMs, ...orphansOf(report).map(({ lost_ms }) => lost_ms))
      // the other duties know nothing of stranded kinds, and must not say that there are none
      if (duty === 'reportStranded') metrics.set('holdfast_stranded_kinds', report.stranded.length)
    },
    swept(sweep) {
      metrics.observe('holdfast_sweep_seconds', {}, sweep.sweepMs / 1000)
      metrics.set('holdfast_oldest_orphan_seconds', oldestMs / 1000)
      oldestMs = 0
      tellSweep(parts, sweep)
    },
    trouble: (error, duty) => tellDutyTrouble(parts, error, duty),
  }
}

function tellSweep({ log }: EngineParts, { sweepMs, recovered, failed, isSystemic }: Sweep): void {
  if (isSystemic) log.error({ failed }, 'systemic: the sweep recovered nothing, and something failed')
  else if (recovered + failed > 0) log.warn({ recovered, failed, sweepMs: Math.round(sweepMs) }, 'sweep')
}

function tellDutyTrouble({ log, metrics }: EngineParts, error: unknown, duty: string | undefined): void {
  if (duty) metrics.add('holdfast_sweep_failures_total', { duty })
  tellTrouble(log, 'reaper', error, duty ? { duty } : {})
}

/** Whatever a duty found, moved or not: an orphan that cannot be moved is the one that grows old. */
function orphansOf({ revived, quarantined, failed, held }: DutyReport): { lost_ms: number }[] {
  return [...revived, ...quarantined, ...failed, ...held]
}

function tellReport(parts: EngineParts, report: DutyReport): void {
  const { log, metrics } = parts
  for (const session of report.ended) tellEnded(parts, session)
  for (const orphan of report.revived) tellOrphan(parts, 'holdfast_revivals_total', orphan, 'revived')
  for (const orphan of report.quarantined) tellOrphan(parts, 'holdfast_quarantines_total', orphan, 'quarantined')
  for (const { orphan, ...facts } of report.healed) {
    metrics.add('holdfast_revivals_total', { orphan, rung: 'barrier' })
    log.warn({ orphan, ...facts }, 'a barrier was mended')
  }
  for (const { id, error, orphan, isBarrier } of report.failed) {
    metrics.add('holdfast_orphan_failures_total')
    const names = isBarrier ? { barrier: id, ...(orphan ? { orphan } : {}) } : { job: id }
    log.error({ ...names, reason: messageOf(error) }, 'an orphan could not be moved')
  }
  for (const { id, isBarrier } of report.held)
    log.debug(
      { [isBarrier ? 'barrier' : 'job']: id },
      'an orphan is locked by another transaction; the next sweep tries again',
    )
  for (const { isError, ...facts } of report.skipped)
    log[isError ? 'error' : 'debug'](facts, 'a barrier was left as it is')
  for (const { isError, message, facts } of report.notes) log[isError ? 'error' : 'info'](facts, message)
  for (const { queue, kind, waiting_ms } of report.stranded)
    log.warn({ queue, kind, waitingMs: Math.round(waiting_ms) }, 'jobs wait for a kind that no living worker knows')
}

function tellEnded({ log, metrics }: EngineParts, { id, rung, host, pid, lost_ms }: EndedRow): void {
  metrics.add('holdfast_sessions_ended_total', { rung })
  log.warn({ session: id, rung, host, pid, lostMs: Math.round(lost_ms) }, 'a session is dead')
}

function tellOrphan(
  { jobLog, metrics }: EngineParts,
  metric: 'holdfast_revivals_total' | 'holdfast_quarantines_total',
  row: Orphan,
  word: string,
): void {
  metrics.add(metric, { orphan: row.orphan, rung: row.rung })
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
    word,
  )
}
