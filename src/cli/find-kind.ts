import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import { type AnyJob, defineJob } from '../job/define.ts'
import { loadJobs } from './load-jobs.ts'
import { nearest } from './nearest.ts'

/** The kind of that name: from a module, with its schema, else as some worker registered it in the database. */
export async function findKind(hf: Holdfast, name: string, module: string | undefined): Promise<AnyJob> {
  return module === undefined ? registered(hf, name) : defined(name, await loadJobs(module))
}

function defined(name: string, jobs: readonly AnyJob[]): AnyJob {
  const job = jobs.find(({ kind }) => kind === name)
  if (job) return job
  throw unknown(
    name,
    jobs.map(({ kind }) => kind),
    'The module has',
  )
}

async function registered(hf: Holdfast, name: string): Promise<AnyJob> {
  const kinds = await hf.kinds()
  const found = kinds.find((kind) => kind.name === name)
  if (found) {
    const { queue, priority, crashBudget } = found
    return defineJob(name, { queue, priority, crashBudget, run: neverRun })
  }
  throw unknown(
    name,
    kinds.map((kind) => kind.name),
    'Workers have registered',
  )
}

// a kind made of its row can be submitted and nothing else: its handlers are with the workers
function neverRun(): never {
  throw new Error('This kind is known by name only.')
}

function unknown(name: string, known: readonly string[], who: string): HoldfastError {
  const near = nearest(name, known)
  const list = known.length > 0 ? `${who}: ${known.join(', ')}.` : `${who} no kinds yet; start a worker first.`
  return new HoldfastError(
    'unknown_kind',
    `No kind is named ${JSON.stringify(name)}${near ? `; did you mean ${near}?` : '.'} ${list}`,
    { details: { known } },
  )
}
