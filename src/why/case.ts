import type { Config } from '../config/config.ts'
import { lengthWords } from '../job/length.ts'
import { ladder } from '../reaper/bound.ts'
import type { BarrierFacts, Facts, JobFacts, Moment, OwnedFacts } from './facts.ts'

/** The facts about a job, with the settings that tell what will happen when. */
export interface JobCase {
  readonly facts: Facts
  readonly job: JobFacts
  readonly config: Config
}

/** The facts about a job that is yet to be submitted, when a barrier fires. */
export interface ContinuationCase {
  readonly facts: Facts
  readonly barrier: OwnedFacts
  readonly config: Config
}

/** What will happen by itself, and when at the latest; without a time if that is for somebody to decide. */
export interface Next {
  what: string
  byAt: Date | null
}

interface Timed {
  readonly facts: Facts
  readonly config: Config
}

/** How long ago a moment was; negative if it is to come, null if there is none. */
export function sinceMs({ facts }: Pick<Timed, 'facts'>, moment: Moment | null | undefined): number | null {
  return moment ? Date.parse(facts.at) - Date.parse(moment) : null
}

/** Whether a moment has passed. */
export function isPast(c: Pick<Timed, 'facts'>, moment: Moment | null | undefined): boolean {
  // at the same millisecond, finer than which a Date does not tell, it has
  return (sinceMs(c, moment) ?? -1) >= 0
}

/** A moment that has passed, in words. */
export function ago(c: Pick<Timed, 'facts'>, moment: Moment | null | undefined): string {
  const ms = sinceMs(c, moment)
  return ms === null ? 'never' : `${lengthWords(ms)} ago`
}

/** How long it is until a moment, in words. */
export function until(c: Pick<Timed, 'facts'>, moment: Moment): string {
  return lengthWords(-(sinceMs(c, moment) ?? 0))
}

const slowSweepMs = 60_000

/** Whether somebody leads, and sweeps. */
export function isLed(c: Pick<Timed, 'facts'>): boolean {
  const { leader } = c.facts
  if (!leader || isPast(c, leader.leaseUntil)) return false
  return leader.sweptAt === null || (sinceMs(c, leader.sweptAt) ?? 0) < slowSweepMs
}

/** What is wrong with the leader, in words. */
export function leaderWords(c: Pick<Timed, 'facts'>): string {
  const { leader } = c.facts
  if (!leader) return 'nobody has ever led'
  if (isPast(c, leader.leaseUntil))
    return `nobody leads: the lease of the last leader ran out ${ago(c, leader.leaseUntil)}`
  return `the leader hangs: it last swept ${ago(c, leader.sweptAt)}`
}

/** What the leader will do with its next sweep; whoever asks is told if there is none. */
export function bySweep(c: Timed, what: string, extraMs = 0): Next {
  if (!isLed(c)) return { what: `${what}, as soon as a process leads (${leaderWords(c)})`, byAt: null }
  return { what, byAt: later(c, sweepBoundMs(c.config) + extraMs) }
}

/** A sweep, and the poll that claims what it gave back. */
function sweepBoundMs({ sweepMs, pollMs }: Config): number {
  return sweepMs + pollMs + 500
}

/** So long after the facts were read. */
export function later({ facts }: Pick<Timed, 'facts'>, ms: number): Date {
  return new Date(Date.parse(facts.at) + ms)
}

/** The moment by which a rung of the recovery ladder has moved a job whose worker is heard of no more. */
export function byRung(c: Timed, rung: 'lock gone' | 'lease ran out'): Next['byAt'] {
  if (!isLed(c)) return null
  const { boundMs } = ladder(c.config).find((one) => one.rung === rung) as { boundMs: number }
  const { heartbeatAt, leaseUntil } = c.facts.session ?? { heartbeatAt: c.facts.at, leaseUntil: c.facts.at }
  // the lease may be longer than our own setting: remote workers choose
  const lostMs = rung === 'lease ran out' ? Date.parse(leaseUntil) + sweepBoundMs(c.config) : 0
  // if that has passed already, the next sweep is the one that sees it
  return new Date(Math.max(Date.parse(heartbeatAt) + boundMs, lostMs, later(c, sweepBoundMs(c.config)).getTime()))
}

const remoteBeats = 3

/** How often the worker of a session is to be heard of. */
export function beatMs({ facts: { session }, config }: Timed): number {
  if (!session?.isRemote) return config.heartbeatMs
  return (Date.parse(session.leaseUntil) - Date.parse(session.heartbeatAt)) / remoteBeats
}

/** The barrier that its present stage has opened. */
export function barrierOf({ facts, job }: JobCase): BarrierFacts | undefined {
  return facts.barriers.find(({ stage }) => stage === job.stage)
}

/** How many items of a barrier have ended, by its counters. */
export function countedOf({ succeeded, failed, cancelled }: BarrierFacts): number {
  return succeeded + failed + cancelled
}

/** How many items of a barrier there are, by its ledger; null if it was not counted to the end. */
export function ledgerTotal({ ledger }: BarrierFacts): number | null {
  if (!ledger?.isWhole) return null
  const { queued, running, waiting, succeeded, failed, cancelled } = ledger
  return queued + running + waiting + succeeded + failed + cancelled
}

/** Whether the counters of a barrier say other than its ledger; false if that is not known. */
export function hasDrifted(barrier: BarrierFacts): boolean {
  const { ledger } = barrier
  if (!ledger?.isWhole) return false
  return (['succeeded', 'failed', 'cancelled'] as const).some((name) => ledger[name] !== barrier[name])
}

/** The handler of a given-up attempt that still runs, in words. */
export function unresponsiveWords(c: Pick<Timed, 'facts'>): string {
  const [first] = c.facts.unresponsive ?? []
  if (!first) return 'no handler of it was given up'
  const where = first.host === undefined ? '' : ` (${first.host}, process ${first.pid})`
  return `the handler of attempt ${first.attempt} was told to end (${first.reason}) ${ago(c, first.since)} and still runs on session ${first.sessionId}${where}`
}

/** A stage by its name and number, as `fields (2 of 3)`; the bare number if nobody registered the kind. */
export function stageWords({ facts: { kind } }: Pick<Timed, 'facts'>, stage: number): string {
  const name = kind?.names?.[stage]
  return name === undefined ? `stage ${stage + 1}` : `stage ${name} (${stage + 1} of ${kind?.stages})`
}

/** A number and its noun. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
