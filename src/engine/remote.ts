import { isEnding } from '../job/machine.ts'
import { makeRemote, type Remote } from '../worker/remote.ts'
import type { RemoteNews } from '../worker/remote-settle.ts'
import type { EngineParts } from './engine.ts'
import { tellOutcome } from './job-log.ts'
import { tellTrouble } from './trouble.ts'
import { type OnEnded, version } from './work.ts'

/** Makes what serves remote workers; `onEnded` hears of jobs that end, for whoever waits for one in this process. */
export function makeEngineRemote(parts: EngineParts, onEnded: OnEnded): Remote & { stop(): Promise<void> } {
  const { store, url, config } = parts
  return makeRemote({ store, url, config, version, news: remoteNews(parts, onEnded) })
}

const mostKinds = 200
/** No kind can be called this. */
const otherKinds = '(other)'

function remoteNews({ log, jobLog, metrics }: EngineParts, onEnded: OnEnded): RemoteNews {
  const kinds = new Set<string>()
  /** Whoever has a key may make up kinds, and each is remembered by us and by whoever collects. */
  const nameOf = (kind: string) => (kinds.size < mostKinds || kinds.has(kind) ? kinds.add(kind) && kind : otherKinds)
  return {
    settled(attempt, outcome) {
      metrics.add('holdfast_settled_total', { kind: nameOf(attempt.kind), outcome: outcome.move })
      tellOutcome(jobLog, attempt, outcome)
      if (isEnding(outcome.move)) onEnded(attempt.fence.id)
    },
    refused(fences, write) {
      metrics.add('holdfast_refused_writes_total', { write }, fences.length)
      log.warn(
        { write, jobs: fences.slice(0, 10), count: fences.length },
        'a write of a remote worker was refused: it does not hold these attempts',
      )
    },
    trouble: (error) => tellTrouble(log, 'server of remote workers', error),
  }
}
