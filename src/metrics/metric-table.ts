interface Metric {
  type: 'counter' | 'gauge' | 'histogram'
  labels: readonly string[]
  help: string
  /** The source: this process (by default), the database when scraped, or the HTTP server. */
  from?: 'database' | 'http'
}

/** Every Holdfast metric, declared once; the docs table derives from it. */
export const metricTable = {
  holdfast_settled_total: { type: 'counter', labels: ['kind', 'outcome'], help: 'Attempts settled by this process.' },
  holdfast_signals_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Signals sent by this process: awaited, kept, repeated, late, unknown, ended or none.',
  },
  holdfast_unique_submits_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Submits of unique jobs by this process: submitted, kept, replaced or rescheduled.',
  },
  holdfast_refused_writes_total: {
    type: 'counter',
    labels: ['write'],
    help: 'Writes refused because this process no longer owned the attempt.',
  },
  holdfast_lease_doubts_total: {
    type: 'counter',
    labels: [],
    help: 'Number of times the lease could not be confirmed and all attempts were aborted.',
  },
  holdfast_heartbeat_deaths_total: {
    type: 'counter',
    labels: [],
    help: 'Heartbeat threads of this process that died and were replaced.',
  },
  holdfast_worker_failures_total: {
    type: 'counter',
    labels: [],
    help: 'Workers of this process that stopped because they could not keep up their heartbeat.',
  },
  holdfast_unresponsive_total: {
    type: 'counter',
    labels: ['kind', 'reason'],
    help: 'Handlers of this process that ignored their abort signal for longer than `timeoutGraceMs`.',
  },
  holdfast_unresponsive_handlers: {
    type: 'gauge',
    labels: [],
    help: 'Handlers of this process that ignored their abort signal and are still running.',
  },
  holdfast_blocked_releases_total: {
    type: 'counter',
    labels: [],
    help: 'Claimed jobs released before they started because a handler of this process blocked its event loop.',
  },
  holdfast_revivals_total: {
    type: 'counter',
    labels: ['orphan', 'rung'],
    help: 'Orphans returned to their queues by this leader.',
  },
  holdfast_quarantines_total: {
    type: 'counter',
    labels: ['orphan', 'rung'],
    help: 'Orphans quarantined because their crash budget was exhausted.',
  },
  holdfast_sessions_ended_total: { type: 'counter', labels: ['rung'], help: 'Dead sessions ended by this leader.' },
  holdfast_recovery_seconds: {
    type: 'histogram',
    labels: ['rung'],
    help: 'Time from the last heartbeat of a worker to the revival of its job.',
  },
  holdfast_oldest_orphan_seconds: {
    type: 'gauge',
    labels: [],
    help: 'Age of the oldest orphan found by the last sweep.',
  },
  holdfast_stranded_kinds: { type: 'gauge', labels: [], help: 'Kinds with due jobs that no running worker handles.' },
  holdfast_leader_term: {
    type: 'gauge',
    labels: [],
    help: 'The term in which this process is leader; 0 while it is not.',
  },
  holdfast_sweep_seconds: { type: 'histogram', labels: [], help: 'Duration of a sweep.' },
  holdfast_sweep_failures_total: { type: 'counter', labels: ['duty'], help: 'Duties that failed entirely.' },
  holdfast_jobs_removed_total: {
    type: 'counter',
    labels: [],
    help: 'Finished jobs that this leader removed because their retention period expired.',
  },
  holdfast_prune_overdue_seconds: {
    type: 'gauge',
    labels: [],
    help: 'How far retention is behind: how long the oldest finished job that was not checked yet has been due; 0 if there is none.',
  },
  holdfast_events_handled_total: { type: 'counter', labels: ['group'], help: 'Events handled by this process.' },
  holdfast_events_parked_total: {
    type: 'counter',
    labels: ['group'],
    help: 'Events parked because their group could not handle them.',
  },
  holdfast_deliveries_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Webhook delivery attempts by this process: delivered, retry or dead.',
  },
  holdfast_oldest_delivery_seconds: {
    type: 'gauge',
    labels: [],
    help: 'How long the oldest webhook delivery has been due.',
  },
  holdfast_endpoints_disabled_total: {
    type: 'counter',
    labels: [],
    help: 'Webhook endpoints that this process disabled.',
  },
  holdfast_schedule_slots_total: {
    type: 'counter',
    labels: ['what'],
    help: 'Slots of schedules that this process decided: `submitted`, `skipped`, `buffered`, `missed`, `failed`.',
  },
  holdfast_schedule_lateness_seconds: {
    type: 'histogram',
    labels: [],
    help: 'Time from a slot to the submit of its job, if this process submitted it.',
  },
  holdfast_bulk_jobs_total: {
    type: 'counter',
    labels: ['operation', 'outcome'],
    help: 'Jobs that bulk operations changed or skipped in this process: done or skipped.',
  },
  holdfast_bulk_failures_total: {
    type: 'counter',
    labels: ['operation'],
    help: 'Turns of bulk operations that failed in this process; each is tried again.',
  },
  holdfast_orphan_failures_total: { type: 'counter', labels: [], help: 'Orphans that could not be moved.' },
  holdfast_up: {
    type: 'gauge',
    labels: [],
    help: 'Whether the database responded to the scrape: 1 or 0. While it is 0, metrics that come from the database are omitted.',
  },
  holdfast_queue_due_jobs: {
    type: 'gauge',
    labels: ['queue'],
    help: 'Jobs of a queue that are due now, counted up to 100,000.',
    from: 'database',
  },
  holdfast_queue_oldest_due_seconds: {
    type: 'gauge',
    labels: ['queue'],
    help: 'How long the oldest due job of a queue has been due; 0 if there is none.',
    from: 'database',
  },
  holdfast_queue_workers: {
    type: 'gauge',
    labels: ['queue'],
    help: 'Live sessions that serve a queue.',
    from: 'database',
  },
  holdfast_sessions: {
    type: 'gauge',
    labels: [],
    help: 'Live sessions, counted up to 1,000.',
    from: 'database',
  },
  holdfast_sessions_unresponsive: {
    type: 'gauge',
    labels: [],
    help: 'Handlers of all live sessions that ignored their abort signal and are still running.',
    from: 'database',
  },
  holdfast_sessions_blocked: {
    type: 'gauge',
    labels: [],
    help: 'Live sessions whose event loop is blocked by a handler.',
    from: 'database',
  },
  holdfast_event_group_behind: {
    type: 'gauge',
    labels: ['group'],
    help: 'How many log positions a group is behind.',
    from: 'database',
  },
  holdfast_event_group_behind_seconds: {
    type: 'gauge',
    labels: ['group'],
    help: 'Age of the oldest event that a group has not handled; 0 if there is none.',
    from: 'database',
  },
  holdfast_oldest_snapshot_seconds: {
    type: 'gauge',
    labels: [],
    help: 'Age of the oldest snapshot that keeps Postgres from vacuuming rows left by claims and settles; 0 if under a minute.',
    from: 'database',
  },
  holdfast_deliveries_pending: {
    type: 'gauge',
    labels: [],
    help: 'Webhook deliveries waiting to be sent, counted up to 100,000.',
    from: 'database',
  },
  holdfast_deliveries_dead: {
    type: 'gauge',
    labels: [],
    help: 'Dead webhook deliveries, which can be replayed, counted up to 100,000.',
    from: 'database',
  },
  holdfast_schedules_due: {
    type: 'gauge',
    labels: [],
    help: 'Schedules whose slot is due and not decided yet, counted up to 1,000.',
    from: 'database',
  },
  holdfast_schedule_overdue_seconds: {
    type: 'gauge',
    labels: [],
    help: 'How long the slot that has been due the longest has been due; 0 if none is.',
    from: 'database',
  },
  holdfast_bulk_running: {
    type: 'gauge',
    labels: [],
    help: 'Bulk operations that have not ended, counted up to 1,000.',
    from: 'database',
  },
  holdfast_http_requests_total: {
    type: 'counter',
    labels: ['route', 'method', 'status'],
    help: 'HTTP requests answered by this process.',
    from: 'http',
  },
  holdfast_http_request_seconds: {
    type: 'histogram',
    labels: ['route'],
    help: 'Time from the head of an HTTP request to the head of its response.',
    from: 'http',
  },
  holdfast_http_waits: {
    type: 'gauge',
    labels: [],
    help: 'Open HTTP requests that are waiting: long polls, results, live events.',
    from: 'http',
  },
  holdfast_http_connections: { type: 'gauge', labels: [], help: 'Open connections to the HTTP API.', from: 'http' },
  holdfast_http_cut_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Connections that the server closed or refused: `slow`, `backlog`, `room`, `pipelined`, `refused`.',
    from: 'http',
  },
  holdfast_http_listeners: { type: 'gauge', labels: [], help: 'Clients connected to the event stream.', from: 'http' },
} as const satisfies Record<string, Metric>

/** The metrics from one source. */
export function metricsFrom(from: 'process' | 'database' | 'http'): [MetricName, Metric][] {
  const all = Object.entries(metricTable) as [MetricName, Metric][]
  return all.filter(([, metric]) => (metric.from ?? 'process') === from)
}

/** The name of a metric. */
export type MetricName = keyof typeof metricTable

/** The metrics as a Markdown table, for the docs. */
export function metricsTable(): string {
  const rows = Object.entries(metricTable).map(
    ([name, { type, labels, help }]) =>
      `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ') || '–'} | ${help} |`,
  )
  return ['| metric | type | labels | meaning |', '|---|---|---|---|', ...rows].join('\n')
}
