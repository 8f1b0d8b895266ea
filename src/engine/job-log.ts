import type { Fence } from '../job/id.ts'
import type { Outcome } from '../settle/outcome.ts'
import type { Log } from './log.ts'

/** The facts of a log line about one job. */
export interface JobFacts {
  job: string
  kind: string
  stage?: string
  attempt: number
  reason?: string
  [fact: string]: unknown
}

/** Logs what happens to single jobs, without flooding the log when very many fail at once. */
export interface JobLog {
  warn(facts: JobFacts, message: string): void
  /** Logs how many lines were left out so far. */
  flush(): void
}

/** How many lines per second there may be about jobs of one kind with the same message. */
const mostAlike = 5
/** How many pairs of kind and message are distinguished per second; the rest is only counted. */
const mostGroups = 20
const windowMs = 1_000

interface Group {
  told: number
  leftOut: number
  message: string
  kind: string
  reason: string | undefined
}

/** Makes the log of jobs. Beyond a few lines per second for each kind and message, it only counts, and logs the number and the last reason each second. */
export function makeJobLog(log: Log): JobLog {
  const groups = new Map<string, Group>()
  let beyond = 0
  let timer: NodeJS.Timeout | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    for (const { leftOut, message, kind, reason } of groups.values())
      if (leftOut > 0)
        log.warn({ kind, leftOut, ...(reason !== undefined && { reason }) }, `${message} (more of the same)`)
    if (beyond > 0) log.warn({ leftOut: beyond }, 'more jobs of other kinds failed or were revived')
    groups.clear()
    beyond = 0
  }

  function groupOf(key: string, { kind }: JobFacts, message: string): Group | undefined {
    const found = groups.get(key)
    if (found || groups.size >= mostGroups) return found
    const group = { told: 0, leftOut: 0, message, kind, reason: undefined }
    groups.set(key, group)
    return group
  }

  return {
    flush,
    warn(facts, message) {
      // must not keep a process alive that has nothing else to do
      timer ??= setTimeout(flush, windowMs).unref()
      const group = groupOf(`${message}\n${facts.kind}`, facts, message)
      if (!group) beyond += 1
      else if (group.told < mostAlike) {
        group.told += 1
        log.warn(facts, message)
      } else {
        group.leftOut += 1
        group.reason = facts.reason
      }
    },
  }
}

/** The messages about failed attempts. They start alike, so that a reader that shows failures in another way can skip them. */
export const failureWords = {
  retry: 'an attempt failed; it will be retried',
  fail: 'an attempt failed; its job has failed',
  partial: 'an attempt of an optional stage failed; its job is partial',
} as const

/** Logs that an attempt failed, if it did. */
export function tellOutcome(
  jobs: JobLog,
  { fence, kind, stage }: { fence: Fence; kind: string; stage: string },
  outcome: Outcome,
): void {
  if (outcome.move !== 'retry' && outcome.move !== 'fail') return
  const { code, message } = outcome.error
  const facts = { job: fence.id, kind, stage, attempt: fence.attempt, code, reason: message }
  if (outcome.move === 'retry') jobs.warn({ ...facts, inMs: Math.round(outcome.delayMs) }, failureWords.retry)
  else jobs.warn(facts, outcome.isOptional ? failureWords.partial : failureWords.fail)
}
