import { collectDefaultMetrics, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client'

let registry: Registry | undefined

/** The metrics of this Node process, in the Prometheus text format. They are collected from the first call on. */
export async function processMetrics(): Promise<string> {
  registry ??= await watchProcess()
  return registry.metrics()
}

async function watchProcess(): Promise<Registry> {
  const made = new Registry()
  collectDefaultMetrics({ register: made })
  const metrics: MetricObjectWithValues<MetricValue<string>>[] = await made.getMetricsAsJSON()
  // a few gauges have names that only counters may have, which metric linters report
  for (const { name, type } of metrics)
    if (String(type) === 'gauge' && name.endsWith('_total')) made.removeSingleMetric(name)
  return made
}
