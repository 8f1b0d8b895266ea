import type { Config } from '../config/config.ts'
import { formatDuration } from '../errors/duration.ts'
import { endedItems, itemCounts } from '../job/fan-out.ts'
import { liveStates } from '../job/machine.ts'
import { ladder } from '../reaper/recovery-bound.ts'
import type { BarrierFacts, Facts, JobFacts, Moment, OwnedFacts } from './facts.ts'

/** The facts about a job, with the settings that determine what happens when. */
export interface JobCase {
  readonly facts: Facts
  readonly job: JobFacts
  readonly config: Config
}

/** The facts about a job that will be submitted when a barrier fires. */
export interface ContinuationCase {
  readonly facts: Facts
  readonly barrier: OwnedFacts
  readonly config: Config
}

/** What happens next without intervention, and by when at the latest; no time if there is no bound. */
export interface Next {
  what: string
  byAt: Date | null
}

interface Timed {
  readonly facts: Facts
  readonly config: Config
}

/** How long ago a moment was; negative if it is in the future, null if there is none. */
export function sinceMs({ facts }: Pick<Timed, 'facts'>, moment: Moment | null | undefined): number | null {
  return moment ? Date.parse(facts.at) - Date.parse(moment) : null
}

/** Whether a moment has passed. */
export function isPast(c: Pick<Timed, 'facts'>, moment: Moment | null | undefined): boolean {
  // a Date has a resolution of a millisecond; within the same one, it counts as past
  return (sinceMs(c, moment) ?? -1) >= 0
}

/** A past moment, in words. */
export function ago(c: Pick<Timed, 'facts'>, moment: Moment | null | undefined): string {
  const ms = sinceMs(c, moment)
  return ms === null ? 'never' : `${formatDuration(ms)} ago`
}

/** The time until a moment, in words. */
export function until(c: Pick<Timed, 'facts'>, moment: Moment): string {
  return formatDuration(-(sinceMs(c, moment) ?? 0))
}

const slowSweepMs = 60_000

/** Whether there is a leader that sweeps. */
export function isLed(c: Pick<Timed, 'facts'>): boolean {
  const { leader } = c.facts
  if (!leader || isPast(c, leader.leaseUntil)) return false
  return leader.sweptAt === null || (sinceMs(c, leader.sweptAt) ?? 0) < slowSweepMs
}

/** What is wrong with the leader, in words. */
export function formatLeader(c: Pick<Timed, 'facts'>): string {
  const { leader } = c.facts
  if (!leader) return 'there has never been a leader'
  if (isPast(c, leader.leaseUntil))
    return `there is no leader: the lease of the last one ran out ${ago(c, leader.leaseUntil)}`
  return `the leader hangs: its last sweep was ${ago(c, leader.sweptAt)}`
}

/** What the leader does with its next sweep, or would do if there were a leader. */
export function bySweep(c: Timed, what: string, extraMs = 0): Next {
  if (!isLed(c)) return { what: `${what} once a process becomes leader (${formatLeader(c)})`, byAt: null }
  return { what, byAt: later(c, sweepBoundMs(c.config) + extraMs) }
}

/** The time for a sweep, and for the poll that claims what it requeued. */
function sweepBoundMs({ sweepMs, pollMs }: Config): number {
  return sweepMs + pollMs + 500
}

/** That long after the facts were read. */
export function later({ facts }: Pick<Timed, 'facts'>, ms: number): Date {
  return new Date(Date.parse(facts.at) + ms)
}

/** When a rung of the recovery ladder has moved a job whose worker is silent, at the latest. */
export function byRung(c: Timed, rung: 'lock gone' | 'lease ran out'): Next['byAt'] {
  if (!isLed(c)) return null
  const { boundMs } = ladder(c.config).find((one) => one.rung === rung) as { boundMs: number }
  const { heartbeatAt, leaseUntil } = c.facts.session ?? { heartbeatAt: c.facts.at, leaseUntil: c.facts.at }
  // the lease may be longer than our own setting: remote workers choose its length
  const lostMs = rung === 'lease ran out' ? Date.parse(leaseUntil) + sweepBoundMs(c.config) : 0
  // if that is in the past already, the next sweep detects it
  return new Date(Math.max(Date.parse(heartbeatAt) + boundMs, lostMs, later(c, sweepBoundMs(c.config)).getTime()))
}

const remoteBeats = 3

/** The heartbeat interval of a session's worker. */
export function beatMs({ facts: { session }, config }: Timed): number {
  if (!session?.isRemote) return config.heartbeatMs
  return (Date.parse(session.leaseUntil) - Date.parse(session.heartbeatAt)) / remoteBeats
}

/** The barrier that the job's current stage has opened. */
export function barrierOf({ facts, job }: JobCase): BarrierFacts | undefined {
  return facts.barriers.find(({ stage }) => stage === job.stage)
}

/** How many items a barrier has, by its ledger; null if not all were counted. */
export function ledgerTotal({ ledger }: BarrierFacts): number | null {
  if (!ledger?.isWhole) return null
  return liveStates.reduce((sum, state) => sum + ledger[state], endedItems(ledger))
}

/** Whether the counters of a barrier differ from its ledger; false if unknown. */
export function hasDrifted(barrier: BarrierFacts): boolean {
  const { ledger } = barrier
  if (!ledger?.isWhole) return false
  return itemCounts.some((count) => ledger[count] !== barrier[count])
}

/** The handler of an aborted attempt that still runs, in words. */
export function formatUnresponsive(c: Pick<Timed, 'facts'>): string {
  const [first] = c.facts.unresponsive ?? []
  if (!first) return 'no handler of it was abandoned'
  const where = first.host === undefined ? '' : ` (${first.host}, process ${first.pid})`
  return `the handler of attempt ${first.attempt} was aborted (${first.reason}) ${ago(c, first.since)} and is still running on session ${first.sessionId}${where}`
}

/** A stage by its name and number, as `fields (2 of 3)`; only the number if the kind is not registered. */
export function formatStage({ facts: { kind } }: Pick<Timed, 'facts'>, stage: number): string {
  const name = kind?.names?.[stage]
  return name === undefined ? `stage ${stage + 1}` : `stage ${name} (${stage + 1} of ${kind?.stages})`
}

/** A number and its noun. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
