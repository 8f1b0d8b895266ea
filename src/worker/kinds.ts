import type { Config } from '../config/config.ts'
import type { AnyJob, AnyStage } from '../job/define.ts'
import { storedKeep } from '../job/keep.ts'
import { declareKinds } from '../limits/limits.ts'
import type { Store } from '../postgres/store.ts'
import { registerKinds } from './kind.sql.ts'

/** A stage, as it is registered. `signal` is what it waits for, if it waits. */
export function registeredStage({ name, optional = false, wait }: AnyStage) {
  return { name, optional, ...(wait && { signal: wait.signal }) }
}

/** Registers the kinds that this worker can run, for all tenants. */
export async function registerJobs(store: Store, config: Config, jobs: readonly AnyJob[]): Promise<void> {
  await store.run(registerKinds, {
    tenant: '',
    names: jobs.map((job) => job.kind),
    queues: jobs.map((job) => job.queue),
    priorities: jobs.map((job) => job.priority),
    crashBudgets: jobs.map((job) => job.crashBudget ?? config.crashBudget),
    stages: jobs.map((job) => JSON.stringify(job.stages.map(registeredStage))),
    keeps: jobs.map((job) => storedKeep(job.keep)),
  })
  await declareKinds(store, jobs)
}
