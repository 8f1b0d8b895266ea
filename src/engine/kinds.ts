import { HoldfastError } from '../errors/errors.ts'
import { nearest } from '../errors/nearest.ts'
import { type AnyJob, defineJob } from '../job/define.ts'

/** A kind, as the last worker that knows it has registered it. */
export interface RegisteredKind {
  name: string
  queue: string
  priority: number
  crashBudget: number
  stages: { name: string; optional: boolean }[]
  seenAt: Date
}

/** The kind of that name as a registered one: it can be submitted and nothing else, for its handlers are with the workers. */
export function registeredKind(kinds: readonly RegisteredKind[], name: string): AnyJob {
  const found = kinds.find((kind) => kind.name === name)
  if (!found)
    throw unknownKind(
      name,
      kinds.map((kind) => kind.name),
      'Workers have registered',
    )
  const { queue, priority, crashBudget } = found
  return defineJob(name, { queue, priority, crashBudget, run: neverRun })
}

function neverRun(): never {
  throw new Error('This kind is known by name only.')
}

/** That no kind is named so, and which there are. */
export function unknownKind(name: string, known: readonly string[], who: string): HoldfastError {
  const near = nearest(name, known)
  const list = known.length > 0 ? `${who}: ${known.join(', ')}.` : `${who} no kinds yet; start a worker first.`
  return new HoldfastError(
    'unknown_kind',
    `No kind is named ${JSON.stringify(name)}${near ? `; did you mean ${near}?` : '.'} ${list}`,
    { details: { known } },
  )
}
