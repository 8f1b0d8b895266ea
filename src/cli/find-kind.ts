import type { Holdfast } from '../engine/engine.ts'
import type { AnyJob } from '../job/define.ts'
import { submittable, unknownKind } from '../reads/kinds.ts'
import { loadJobs } from './load-jobs.ts'

/** Finds a kind by name: in a module, with its schema, or else as registered in the database for that tenant. */
export async function findKind(
  hf: Holdfast,
  name: string,
  { module, tenant }: { module?: string | undefined; tenant?: string | undefined },
): Promise<AnyJob> {
  if (module !== undefined) return defined(name, await loadJobs(module))
  const scope = tenant === undefined ? {} : { tenant }
  const registered = await hf.kind(name, scope)
  if (registered) return submittable(registered)
  throw unknownKind(name, await hf.nearKinds(name, scope), 'Workers have registered')
}

function defined(name: string, jobs: readonly AnyJob[]): AnyJob {
  const job = jobs.find(({ kind }) => kind === name)
  if (job) return job
  throw unknownKind(
    name,
    jobs.map(({ kind }) => kind),
    'The module exports',
  )
}
