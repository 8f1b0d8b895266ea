import type { Owner } from '../barrier/owner.ts'
import type { Config } from '../config/config.ts'
import type { Wakeups } from '../events/wakeups.ts'
import type { AnyJob } from '../job/define.ts'
import type { Flow } from '../job/middleware.ts'
import { type Metrics, makeMetrics } from '../metrics/metrics.ts'
import type { Store } from '../postgres/store.ts'
import { makeVitals, type Vitals } from '../service/vitals.ts'
import type { Deliverer } from '../webhooks/deliverer.ts'
import { makeEngineDeliverer } from './deliver.ts'
import { makeEngineWakeups } from './events.ts'
import { type JobLog, makeJobLog } from './job-log.ts'
import { Listeners } from './listeners.ts'
import type { Log } from './log.ts'

/** What `connect` provides to an engine. */
export interface Connected {
  store: Store
  /** Separate connections for transactions that wait for other systems. */
  aside: Store
  /** A separate connection for callers that wait for results. */
  waits: Store
  owners: Readonly<Record<string, Owner>>
  url: string
  config: Config
  jobs: readonly AnyJob[]
  log: Log
  supervisor: string | null
  /** The middleware of this process. */
  flow: Flow
  onPooler: () => void
  stopServer: () => Promise<void>
}

/** What all parts of an engine share. */
export interface EngineParts extends Connected {
  jobLog: JobLog
  listeners: Listeners
  metrics: Metrics
  vitals: Vitals
  wakeups: Wakeups
  deliverer: Deliverer
}

/** Makes what all parts of an engine share. */
export function makeParts(connected: Connected): EngineParts {
  const shared = {
    ...connected,
    jobLog: makeJobLog(connected.log),
    listeners: new Listeners(connected.log),
    metrics: makeMetrics('process', 'database'),
    vitals: makeVitals(),
    wakeups: makeEngineWakeups(connected),
  }
  return { ...shared, deliverer: makeEngineDeliverer(shared) }
}
