import type { Holdfast } from '../engine/engine.ts'
import { registeredKind, unknownKind } from '../engine/kinds.ts'
import type { AnyJob } from '../job/define.ts'
import { loadJobs } from './load-jobs.ts'

/** The kind of that name: from a module, with its schema, else as some worker registered it in the database. */
export async function findKind(hf: Holdfast, name: string, module: string | undefined): Promise<AnyJob> {
  return module === undefined ? registeredKind(await hf.kinds(), name) : defined(name, await loadJobs(module))
}

function defined(name: string, jobs: readonly AnyJob[]): AnyJob {
  const job = jobs.find(({ kind }) => kind === name)
  if (job) return job
  throw unknownKind(
    name,
    jobs.map(({ kind }) => kind),
    'The module has',
  )
}
