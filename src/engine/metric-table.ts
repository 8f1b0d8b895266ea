interface Metric {
  type: 'counter' | 'gauge' | 'histogram'
  labels: readonly string[]
  help: string
  /** Who knows it: this process (by default), the database when it is asked, or the HTTP server. */
  from?: 'database' | 'http'
}

/** Every metric of Holdfast, declared once; the docs table derives from it. */
export const metricTable = {
  holdfast_settled_total: { type: 'counter', labels: ['kind', 'outcome'], help: 'Attempts settled by this process.' },
  holdfast_refused_writes_total: {
    type: 'counter',
    labels: ['write'],
    help: 'Writes refused because the attempt was no longer ours.',
  },
  holdfast_lease_doubts_total: {
    type: 'counter',
    labels: [],
    help: 'Times the lease could not be confirmed and all attempts were aborted.',
  },
  holdfast_heartbeat_deaths_total: {
    type: 'counter',
    labels: [],
    help: 'Heartbeat threads of this process that died and were replaced.',
  },
  holdfast_worker_failures_total: {
    type: 'counter',
    labels: [],
    help: 'Workers of this process that stopped because they could not keep a heartbeat.',
  },
  holdfast_unresponsive_total: {
    type: 'counter',
    labels: ['kind', 'reason'],
    help: 'Handlers of this process that ignored their signal for longer than `timeoutGraceMs`.',
  },
  holdfast_unresponsive_handlers: {
    type: 'gauge',
    labels: [],
    help: 'Handlers of this process that ignored their signal and still run.',
  },
  holdfast_blocked_releases_total: {
    type: 'counter',
    labels: [],
    help: 'Jobs that were claimed and given back unstarted, because a handler of this process blocked its event loop.',
  },
  holdfast_revivals_total: {
    type: 'counter',
    labels: ['orphan', 'rung'],
    help: 'Orphans put back in their queues by this leader.',
  },
  holdfast_quarantines_total: {
    type: 'counter',
    labels: ['orphan', 'rung'],
    help: 'Orphans ended because their crash budget was spent.',
  },
  holdfast_sessions_ended_total: { type: 'counter', labels: ['rung'], help: 'Dead sessions ended by this leader.' },
  holdfast_recovery_seconds: {
    type: 'histogram',
    labels: ['rung'],
    help: 'From the last sign of a worker to the revival of its job.',
  },
  holdfast_oldest_orphan_seconds: {
    type: 'gauge',
    labels: [],
    help: 'Age of the oldest orphan that the last sweep found.',
  },
  holdfast_stranded_kinds: { type: 'gauge', labels: [], help: 'Kinds with due jobs that no living worker knows.' },
  holdfast_leader_term: {
    type: 'gauge',
    labels: [],
    help: 'The term in which this process leads; 0 while it does not.',
  },
  holdfast_sweep_seconds: { type: 'histogram', labels: [], help: 'How long a sweep took.' },
  holdfast_sweep_failures_total: { type: 'counter', labels: ['duty'], help: 'Duties that failed as a whole.' },
  holdfast_events_handled_total: { type: 'counter', labels: ['group'], help: 'Events handled by this process.' },
  holdfast_events_parked_total: {
    type: 'counter',
    labels: ['group'],
    help: 'Events put aside because their group could not handle them.',
  },
  holdfast_deliveries_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Tries of webhook deliveries by this process: delivered, retry or dead.',
  },
  holdfast_oldest_delivery_seconds: {
    type: 'gauge',
    labels: [],
    help: 'How long the oldest webhook delivery has been due.',
  },
  holdfast_endpoints_disabled_total: {
    type: 'counter',
    labels: [],
    help: 'Webhook endpoints that this process switched off.',
  },
  holdfast_orphan_failures_total: { type: 'counter', labels: [], help: 'Orphans that could not be moved.' },
  holdfast_up: {
    type: 'gauge',
    labels: [],
    help: 'Whether the database answered when this was asked for: 1 or 0. While it is 0, what only the database knows is left out.',
  },
  holdfast_queue_due_jobs: {
    type: 'gauge',
    labels: ['queue'],
    help: 'Jobs of a queue that could run this moment; no more than 100,000 are counted.',
    from: 'database',
  },
  holdfast_queue_oldest_due_seconds: {
    type: 'gauge',
    labels: ['queue'],
    help: 'How long the first due job of a queue has been due; 0 if none is.',
    from: 'database',
  },
  holdfast_queue_workers: {
    type: 'gauge',
    labels: ['queue'],
    help: 'Living sessions that serve a queue.',
    from: 'database',
  },
  holdfast_sessions: {
    type: 'gauge',
    labels: [],
    help: 'Living sessions; no more than 1,000 are counted.',
    from: 'database',
  },
  holdfast_sessions_unresponsive: {
    type: 'gauge',
    labels: [],
    help: 'Handlers of all living sessions that ignored their signal and still run.',
    from: 'database',
  },
  holdfast_sessions_blocked: {
    type: 'gauge',
    labels: [],
    help: 'Living sessions whose event loop a handler blocks.',
    from: 'database',
  },
  holdfast_event_group_behind: {
    type: 'gauge',
    labels: ['group'],
    help: 'How many places of the log a group of readers is behind.',
    from: 'database',
  },
  holdfast_event_group_behind_seconds: {
    type: 'gauge',
    labels: ['group'],
    help: 'Age of the first event that a group of readers has not handled; 0 if there is none.',
    from: 'database',
  },
  holdfast_deliveries_pending: {
    type: 'gauge',
    labels: [],
    help: 'Webhook deliveries that are to be sent; no more than 100,000 are counted.',
    from: 'database',
  },
  holdfast_deliveries_dead: {
    type: 'gauge',
    labels: [],
    help: 'Webhook deliveries that were given up and can be replayed; no more than 100,000 are counted.',
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
    help: 'From the head of an HTTP request to the head of its answer.',
    from: 'http',
  },
  holdfast_http_waits: { type: 'gauge', labels: [], help: 'HTTP requests that wait for something.', from: 'http' },
  holdfast_http_connections: { type: 'gauge', labels: [], help: 'Open connections to the HTTP API.', from: 'http' },
  holdfast_http_cut_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Connections that the server ended or refused: `slow`, `backlog`, `room`, `pipelined`, `refused`.',
    from: 'http',
  },
  holdfast_http_listeners: { type: 'gauge', labels: [], help: 'Listeners to the stream of events.', from: 'http' },
} as const satisfies Record<string, Metric>

/** The metrics that somebody knows. */
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
