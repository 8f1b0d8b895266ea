import type { Config } from '../config/config.ts'
import type { AnyJob } from '../job/define.ts'
import { storedKeep } from '../job/keep.ts'
import { declareKinds } from '../limits/limits.ts'
import type { Runner } from '../postgres/store.ts'
import { registerKinds } from './kind.sql.ts'

/** Registers the kinds that this worker can run, for all tenants. */
export async function registerJobs(store: Runner, config: Config, jobs: readonly AnyJob[]): Promise<void> {
  await store.run(registerKinds, {
    tenant: '',
    names: jobs.map((job) => job.kind),
    queues: jobs.map((job) => job.queue),
    priorities: jobs.map((job) => job.priority),
    crashBudgets: jobs.map((job) => job.crashBudget ?? config.crashBudget),
    stages: jobs.map((job) => JSON.stringify(job.stages.map(({ name, optional = false }) => ({ name, optional })))),
    keeps: jobs.map((job) => storedKeep(job.keep)),
  })
  await declareKinds(store, jobs)
}
