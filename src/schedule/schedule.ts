import type { AnyJob, InputOf } from '../job/define.ts'
import type { JobId } from '../job/id.ts'
import type { MissedMode, OverlapMode, ScheduleTiming } from '../job/schedule.ts'
import type { TenantScope } from '../job/scope.ts'
import type { SlotRow } from './runs.sql.ts'
import type { ListedRow, ScheduleRow } from './schedule.sql.ts'

/** A schedule to set. */
export interface NewSchedule<J extends AnyJob = AnyJob> extends ScheduleTiming {
  /** The kind of its jobs: a value that defineJob returned, or the name of a registered kind. */
  kind: J | string
  /** The input of its jobs. */
  input?: InputOf<J> | unknown
  /** The tenant of the schedule and its jobs. Default: `default`. */
  tenant?: string
  /** The priority of its jobs, 1 (first) to 4 (last). Default: that of the kind. */
  priority?: number
}

/** A schedule with the input of its jobs. */
export interface Schedule extends ScheduleSummary {
  input: unknown
}

/** A schedule as it is listed: an input may be large, and is read with `get`. */
export interface ScheduleSummary {
  name: string
  tenant: string
  kind: string
  priority: number | null
  cron: string | null
  everyMs: number | null
  tz: string
  jitterMs: number
  startsAt: Date | null
  endsAt: Date | null
  missed: MissedMode
  missedWindowMs: number
  missedCap: number
  overlap: OverlapMode
  /** `failing`: its slot could not be decided; `problem` says why, and it is tried again. `ended`: it has no slots left. */
  state: 'active' | 'paused' | 'failing' | 'ended'
  /** The next slot; null if there is none left. While it is paused, the first slot of the pause. */
  nextAt: Date | null
  /** A slot that waits for the job of an earlier one to end. */
  bufferedAt: Date | null
  lastSlotAt: Date | null
  /** The last job that it submitted. */
  lastJob: JobId | null
  pausedAt: Date | null
  pausedBy: string | null
  pauseReason: string | null
  /** Whether a kind declares it in code. */
  isDeclared: boolean
  /** Whether it was changed at run time since it was declared. */
  isEdited: boolean
  problem: string | null
  createdAt: Date
  updatedAt: Date
  updatedBy: string | null
}

/** What became of a slot. */
export interface Slot {
  slotAt: Date
  /** `skipped`, `buffered` and `failed` have a reason. A `triggered` job was submitted beside the slots. */
  what: SlotRow['what']
  reason: string | null
  job: JobId | null
  /** Of slots that were skipped together: the last one. */
  untilAt: Date | null
  /** How many slots it stands for; 1,000 means at least that many. */
  slots: number
  decidedAt: Date
  /** Who triggered or backfilled it. */
  by: string | null
}

/** Which schedules to list. */
export interface ScheduleListOptions extends TenantScope {
  /** Only schedules of this kind. */
  kind?: string
  /** Only schedules after this one, by tenant and name: the last one of the previous page. */
  after?: { tenant: string; name: string }
  /** Maximum number of schedules, at most 1,000. Default: 1,000. */
  limit?: number
}

/** Which part of a history. */
export interface SlotOptions extends TenantScope {
  /** Only slots before this one: the last one of the previous page. */
  before?: Date
  /** Maximum number of slots, at most 1,000. Default: 100. */
  limit?: number
}

function stateOf({ paused_at, failures, next_at }: ListedRow): Schedule['state'] {
  if (paused_at) return 'paused'
  if (failures > 0) return 'failing'
  return next_at ? 'active' : 'ended'
}

/** A stored schedule as callers see it. */
export function scheduleOf(row: ScheduleRow): Schedule {
  return { ...summaryOf(row), input: row.input }
}

/** The same without its input. */
export function summaryOf(row: ListedRow): ScheduleSummary {
  return {
    name: row.name,
    tenant: row.tenant,
    kind: row.kind,
    priority: row.priority,
    cron: row.cron,
    everyMs: row.every_ms,
    tz: row.tz,
    jitterMs: row.jitter_ms,
    startsAt: row.starts_at,
    endsAt: row.ends_at,
    missed: row.missed,
    missedWindowMs: row.missed_window_ms,
    missedCap: row.missed_cap,
    overlap: row.overlap,
    state: stateOf(row),
    nextAt: row.next_at,
    bufferedAt: row.buffered_at,
    lastSlotAt: row.last_slot_at,
    lastJob: row.last_job_id as JobId | null,
    pausedAt: row.paused_at,
    pausedBy: row.paused_by,
    pauseReason: row.pause_reason,
    isDeclared: row.declared !== null,
    isEdited: row.declared !== null && row.edited_at !== null,
    problem: row.problem,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    updatedBy: row.updated_by,
  }
}

/** A decided slot as callers see it. */
export function slotOfRow({ slot_at, job_id, until_at, decided_at, ...row }: SlotRow): Slot {
  return { ...row, slotAt: slot_at, job: job_id as JobId | null, untilAt: until_at, decidedAt: decided_at }
}
