import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { type MetricName, metricsFrom, metricTable } from './metric-table.ts'

/** Counts what happens. */
export interface Metrics {
  add(name: MetricName, labels?: Record<string, string>, value?: number): void
  set(name: MetricName, value: number, labels?: Record<string, string>): void
  observe(name: MetricName, labels: Record<string, string>, value: number): void
  /** Removes all values of a metric, so that it shows none instead of old ones. */
  clear(name: MetricName): void
  /** All metrics in the Prometheus text format. */
  text(): Promise<string>
}

const recoveryBuckets = [0.1, 0.25, 0.5, 1, 2, 3, 4, 5, 7.5, 10, 15, 20, 30, 60, 300, 3600]
const buckets: Partial<Record<MetricName, number[]>> = {
  holdfast_sweep_seconds: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
  holdfast_http_request_seconds: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
}

/** Makes the metrics of these sources, in a registry of their own. */
export function makeMetrics(...sources: ('process' | 'database' | 'http')[]): Metrics {
  const registry = new Registry()
  const all = new Map<MetricName, Counter | Gauge | Histogram>()
  for (const [name, { type, labels, help }] of sources.flatMap(metricsFrom)) {
    const common = { name, help, labelNames: [...labels], registers: [registry] }
    all.set(
      name,
      type === 'counter'
        ? new Counter(common)
        : type === 'gauge'
          ? new Gauge(common)
          : new Histogram({ ...common, buckets: buckets[name] ?? recoveryBuckets }),
    )
  }
  return {
    add: (name, labels = {}, value = 1) => (all.get(name) as Counter | Gauge).inc(labels, value),
    set: (name, value, labels = {}) => (all.get(name) as Gauge).set(labels, value),
    observe: (name, labels, value) => (all.get(name) as Histogram).observe(labels, value),
    // resetting a metric without labels would set it to 0, which is a value
    clear: (name) =>
      metricTable[name].labels.length > 0 ? all.get(name)?.reset() : (all.get(name) as Gauge | undefined)?.remove(),
    text: () => registry.metrics(),
  }
}
