import type { Duration } from '../errors/duration.ts'
import { type JobId, timeOfId } from './id.ts'

/** What to do with slots that nobody could run in time: none, only the latest, or all of them. */
export const missedModes = ['skip', 'latest', 'all'] as const
/** What to do with a slot while the job of an earlier slot has not ended. */
export const overlapModes = ['skip', 'buffer', 'allow', 'cancel'] as const

/** See `missedModes`. */
export type MissedMode = (typeof missedModes)[number]
/** See `overlapModes`. */
export type OverlapMode = (typeof overlapModes)[number]

/** When a schedule runs, and what happens if it can't. */
export interface ScheduleTiming {
  /** A cron pattern: `minute hour day month weekday`, with seconds in front if there are six fields, or a name such as `@daily`. */
  cron?: string
  /** An interval of at least a second instead of a pattern: milliseconds, or a string such as `10m`. Counted from `startsAt`, or else from 1970. */
  every?: Duration
  /** The time zone of the pattern, by its IANA name. Default: `UTC`. */
  tz?: string
  /** Delays each job by up to this long, so that many schedules don't run at the same moment. Default: none. */
  jitter?: Duration
  /** No slot before this time. */
  startsAt?: Date
  /** No slot after this time. */
  endsAt?: Date
  /** What to do with slots that were missed because nothing was running: `skip` them, run the `latest`, or `all`. Default: `latest`. */
  missed?: MissedMode
  /** With `missed: 'all'`, how old a slot may be. Default: one day. */
  missedWindow?: Duration
  /** With `missed: 'all'`, how many of the latest slots to run. Default: 100. */
  missedCap?: number
  /** What to do with a slot while the job of an earlier one has not ended: `skip` it, `buffer` one, `allow` both, or `cancel` the earlier job. Default: `skip`. */
  overlap?: OverlapMode
}

/** A schedule that is declared with its kind. */
export interface ScheduleDeclaration<Input = unknown> extends ScheduleTiming {
  /** Its name; required if a kind declares several. Default: the name of the kind. */
  name?: string
  /** The input of its jobs. */
  input?: Input
  /** The tenant of the schedule and its jobs. Default: `default`. */
  tenant?: string
  /** The priority of its jobs. Default: that of the kind. */
  priority?: number
}

/** The slot that the job of a schedule was submitted for. For other jobs, and for one that was triggered, about when it was submitted. */
export function slotOf(id: JobId): Date {
  return timeOfId(id)
}
