import { Counter, Gauge, Histogram, Registry } from 'prom-client'

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
} as const satisfies Record<
  string,
  { type: 'counter' | 'gauge' | 'histogram'; labels: readonly string[]; help: string }
>

/** The name of a metric. */
export type MetricName = keyof typeof metricTable

/** Counts what happens. */
export interface Metrics {
  add(name: MetricName, labels?: Record<string, string>, value?: number): void
  set(name: MetricName, value: number): void
  observe(name: MetricName, labels: Record<string, string>, value: number): void
  /** All of it in the text format of Prometheus. */
  text(): Promise<string>
}

const recoveryBuckets = [0.1, 0.25, 0.5, 1, 2, 3, 4, 5, 7.5, 10, 15, 20, 30, 60, 300, 3600]
const sweepBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** Makes the metrics of an engine, in a registry of their own. */
export function makeMetrics(): Metrics {
  const registry = new Registry()
  const all = new Map<string, Counter | Gauge | Histogram>()
  for (const [name, { type, labels, help }] of Object.entries(metricTable)) {
    const common = { name, help, labelNames: [...labels], registers: [registry] }
    const buckets = name === 'holdfast_sweep_seconds' ? sweepBuckets : recoveryBuckets
    all.set(
      name,
      type === 'counter'
        ? new Counter(common)
        : type === 'gauge'
          ? new Gauge(common)
          : new Histogram({ ...common, buckets }),
    )
  }
  return {
    add: (name, labels = {}, value = 1) => (all.get(name) as Counter).inc(labels, value),
    set: (name, value) => (all.get(name) as Gauge).set(value),
    observe: (name, labels, value) => (all.get(name) as Histogram).observe(labels, value),
    text: () => registry.metrics(),
  }
}

/** The metrics as a Markdown table, for the docs. */
export function metricsTable(): string {
  const rows = Object.entries(metricTable).map(
    ([name, { type, labels, help }]) =>
      `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ') || '–'} | ${help} |`,
  )
  return ['| metric | type | labels | meaning |', '|---|---|---|---|', ...rows].join('\n')
}
