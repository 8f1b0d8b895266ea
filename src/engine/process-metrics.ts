import { collectDefaultMetrics, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client'

let registry: Registry | undefined

/** What Node tells of this process, in the text format of Prometheus. Watched from the first time that somebody asks. */
export async function processMetrics(): Promise<string> {
  registry ??= await watchProcess()
  return registry.metrics()
}

async function watchProcess(): Promise<Registry> {
  const made = new Registry()
  collectDefaultMetrics({ register: made })
  const metrics: MetricObjectWithValues<MetricValue<string>>[] = await made.getMetricsAsJSON()
  // a few gauges are named as only counters may be, and a checker of metrics says so
  for (const { name, type } of metrics)
    if (String(type) === 'gauge' && name.endsWith('_total')) made.removeSingleMetric(name)
  return made
}
