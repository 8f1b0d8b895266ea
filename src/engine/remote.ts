import { version } from '../config/version.ts'
import { isEnding } from '../job/machine.ts'
import { makeRemote, type Remote } from '../remote/remote.ts'
import type { RemoteObserver } from '../remote/settle.ts'
import { tellOutcome } from './job-log.ts'
import { logError } from './log-error.ts'
import type { EngineParts } from './parts.ts'
import type { OnEnded } from './work.ts'

/** Makes what serves remote workers. `onEnded` is called for each job that ends, for callers in this process that wait for its result. */
export function makeEngineRemote(parts: EngineParts, onEnded: OnEnded): Remote & { stop(): Promise<void> } {
  const { store, url, config } = parts
  return makeRemote({ store, url, config, version, observer: remoteObserver(parts, onEnded) })
}

const mostKinds = 200
/** Not a valid name of a kind. */
const otherKinds = '(other)'

function remoteObserver({ log, jobLog, listeners, metrics }: EngineParts, onEnded: OnEnded): RemoteObserver {
  const kinds = new Set<string>()
  /** Anyone with a key may invent kinds, and each would be a metric series of its own. */
  const nameOf = (kind: string) => (kinds.size < mostKinds || kinds.has(kind) ? kinds.add(kind) && kind : otherKinds)
  return {
    settled(attempt, outcome) {
      metrics.add('holdfast_settled_total', { kind: nameOf(attempt.kind), outcome: outcome.move })
      tellOutcome(jobLog, attempt, outcome)
      listeners.settled(attempt, outcome)
      if (isEnding(outcome.move)) onEnded(attempt.fence.id)
    },
    refused(fences, write) {
      metrics.add('holdfast_refused_writes_total', { write }, fences.length)
      log.warn(
        { write, jobs: fences.slice(0, 10), count: fences.length },
        'a write of a remote worker was refused: it does not hold these attempts',
      )
    },
    onError: (error) => logError(log, 'server of remote workers', error),
  }
}
