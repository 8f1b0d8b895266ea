import type { Group } from '../events/group.ts'
import type { Limit, Limits } from '../limits/limits.ts'
import type { Reads } from '../reads/reads.ts'
import type { OldSnapshot } from '../reads/recovery.ts'
import { within } from '../service/service.ts'
import type { Deliveries } from '../webhooks/deliveries.ts'
import { metricsFrom } from './metric-table.ts'
import type { Metrics } from './metrics.ts'
import { processMetrics } from './process-metrics.ts'

/** The sources of the metrics that come from the database. */
export interface Asked {
  reads: Pick<Reads, 'queues' | 'sessions'>
  oldestSnapshot: () => Promise<OldSnapshot | null>
  limits: Pick<Limits, 'list'>
  events: { groups(): Promise<Group[]> }
  webhooks: Pick<Deliveries, 'backlog'>
  schedules: { overdue(): Promise<{ count: number; overdueMs: number }> }
  bulkRunning: () => Promise<number>
}

// a scraper gives up after ten seconds by default, and must have an answer before
const patienceMs = 3_000

/** Makes the answer to a scrape. It never fails: while the database is unreachable, it says so and omits the metrics that come from it. */
export function makeScrape(metrics: Metrics, asked: Asked): () => Promise<string> {
  let asking: Promise<boolean> | undefined

  /** Concurrent scrapes share the answer, so that an impatient scraper costs the database nothing. */
  function askOnce(): Promise<boolean> {
    asking ??= ask(metrics, asked)
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        asking = undefined
      })
    return asking
  }

  return async () => {
    const asking = askOnce()
    const isUp = (await within(patienceMs, asking)) && (await asking)
    if (!isUp) forget(metrics)
    metrics.set('holdfast_up', isUp ? 1 : 0)
    return (await Promise.all([metrics.text(), processMetrics()])).join('\n')
  }
}

/** Keys are as many as there are customers, so only limits on whole kinds and queues are shown. */
function setLimits(metrics: Metrics, limits: Limit[]): void {
  for (const { target, concurrency, running } of limits) {
    if (running === null || 'key' in target) continue
    const labels = 'queue' in target ? { on: 'queue', name: target.queue } : { on: 'kind', name: target.kind }
    if (concurrency !== undefined) metrics.set('holdfast_limit_slots', concurrency, labels)
    metrics.set('holdfast_limit_slots_used', running, labels)
  }
}

function forget(metrics: Metrics): void {
  for (const [name] of metricsFrom('database')) metrics.clear(name)
}

async function ask(metrics: Metrics, asked: Asked): Promise<void> {
  const { reads, oldestSnapshot, events, webhooks, limits, schedules, bulkRunning } = asked
  const [queues, sessions, groups, backlog, snapshot, limited, overdue, bulk] = await Promise.all([
    reads.queues(),
    reads.sessions({ limit: 1000 }),
    events.groups(),
    webhooks.backlog(),
    oldestSnapshot(),
    limits.list(),
    schedules.overdue(),
    bulkRunning(),
  ])
  // removes queues and groups that no longer exist
  forget(metrics)
  setLimits(metrics, limited)
  for (const { name: queue, queued, oldestDueMs, workers } of queues) {
    metrics.set('holdfast_queue_due_jobs', queued, { queue })
    metrics.set('holdfast_queue_oldest_due_seconds', (oldestDueMs ?? 0) / 1000, { queue })
    metrics.set('holdfast_queue_workers', workers, { queue })
  }
  const living = sessions.filter(({ isLive }) => isLive)
  metrics.set('holdfast_sessions', living.length)
  metrics.set(
    'holdfast_sessions_unresponsive',
    living.reduce((sum, { unresponsive }) => sum + unresponsive, 0),
  )
  metrics.set('holdfast_sessions_blocked', living.filter(({ blockedMs }) => blockedMs > 0).length)
  for (const { name: group, behind, behindMs } of groups) {
    metrics.set('holdfast_event_group_behind', behind, { group })
    metrics.set('holdfast_event_group_behind_seconds', behind > 0 ? behindMs / 1000 : 0, { group })
  }
  metrics.set('holdfast_oldest_snapshot_seconds', snapshot?.since ? (Date.now() - snapshot.since.getTime()) / 1000 : 0)
  metrics.set('holdfast_deliveries_pending', backlog.pending)
  metrics.set('holdfast_deliveries_dead', backlog.dead)
  metrics.set('holdfast_schedules_due', overdue.count)
  metrics.set('holdfast_schedule_overdue_seconds', overdue.overdueMs / 1000)
  metrics.set('holdfast_bulk_running', bulk)
}
