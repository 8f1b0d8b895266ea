import type { Config } from '../config/config.ts'
import { type AnyJob, type AnyStage, priorities } from '../job/define.ts'
import { eachOf } from './attempt.ts'

/** One range of the claim's index: the jobs of a kind in a queue at a priority. */
export interface Lane {
  queue: string
  kind: string
  priority: number
  /** Jobs at a later stage were advanced by a newer version of the code; this worker leaves them to it. */
  stageCount: number
}

/** A name for a lane that is the same wherever the lane comes from. */
export function keyOf({ queue, kind, priority }: Pick<Lane, 'queue' | 'kind' | 'priority'>): string {
  return JSON.stringify([queue, kind, priority])
}

/** The same for a kind in its queue, whatever the priority. */
export function kindKeyOf({ queue, kind }: Pick<Lane, 'queue' | 'kind'>): string {
  return JSON.stringify([queue, kind])
}

/** The lanes of these kinds, urgent ones first; only those of the given queues, if there are any. */
export function lanesOf(jobs: readonly AnyJob[], queues: readonly string[]): Lane[] {
  const served = jobs.filter((job) => queues.length === 0 || queues.includes(job.queue))
  return priorities.flatMap((priority) =>
    served.map(({ queue, kind, stages }) => ({ queue, kind, priority, stageCount: stages.length })),
  )
}

/** The same lanes, starting with another kind each turn, so that a busy kind can't starve others of its priority. */
export function rotated(lanes: Lane[], turn: number): Lane[] {
  const kinds = lanes.length / priorities.length
  const shift = turn % Math.max(1, kinds)
  if (shift === 0) return lanes
  return priorities.flatMap((_, index) => {
    const same = lanes.slice(index * kinds, (index + 1) * kinds)
    return [...same.slice(shift), ...same.slice(0, shift)]
  })
}

/** For each kind and stage, after how long an attempt counts as hung, as JSON: time to wait, run and wind up. */
export function deadlinesOf(jobs: readonly AnyJob[], config: Config): string {
  const slackMs = config.holdMs + 2 * config.timeoutGraceMs
  return JSON.stringify(
    Object.fromEntries(jobs.map((job) => [job.kind, job.stages.map((stage) => longestOf(stage, config) + slackMs)])),
  )
}

/** A stage that fans out shares its number with its items, so the longer of the two timeouts counts. */
function longestOf(stage: AnyStage, config: Config): number {
  const own = stage.timeoutMs ?? config.jobTimeoutMs
  return stage.each && !('stages' in stage.each) ? Math.max(own, eachOf(stage).timeoutMs ?? config.jobTimeoutMs) : own
}
