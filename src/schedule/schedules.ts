import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import { refuseUnknown } from '../errors/options.ts'
import { type AnyJob, isJob } from '../job/define.ts'
import { freshJobId, type JobId } from '../job/id.ts'
import { ofTiming } from '../job/known-options.ts'
import type { Flow } from '../job/middleware.ts'
import type { ScheduleTiming } from '../job/schedule.ts'
import type { Actor, TenantScope } from '../job/scope.ts'
import { limitOf, mustBeObject, textOf, wholeOf } from '../job/validate-argument.ts'
import type { Store } from '../postgres/store.ts'
import { prepareThrough } from '../submit/prepare-through.ts'
import { type Backfilled, type BackfillRange, backfill } from './backfill.ts'
import {
  checkTiming,
  type Definition,
  firstSlot,
  type GivenTiming,
  invalid,
  kindParts,
  scheduleName,
  scheduleTenant,
} from './definition.ts'
import { mostCounted, timingOf } from './plan.ts'
import { listSlots, triggerSchedule } from './runs.sql.ts'
import {
  databaseTime,
  getSchedule,
  listSchedules,
  listSchedulesOfTenant,
  pauseSchedule,
  removeSchedule,
  resumeSchedule,
  type ScheduleRow,
  setSchedule,
  type Which,
} from './schedule.sql.ts'
import {
  type NewSchedule,
  type Schedule,
  type ScheduleListOptions,
  type ScheduleSummary,
  type Slot,
  type SlotOptions,
  scheduleOf,
  slotOfRow,
  summaryOf,
} from './schedule.ts'
import { slotsOf, walk } from './slots.ts'
import { tickOne } from './tick.ts'

/** Schedules. Without a tenant, methods about one schedule mean that of the tenant `default`. */
export interface Schedules {
  /** Sets a schedule: creates it, or replaces its definition. Its pause, history and last job stay, and its next slot if the timing is the same. Throws schedule_invalid. */
  set<J extends AnyJob>(name: string, schedule: NewSchedule<J>, actor?: Actor): Promise<Schedule>
  /** Returns a schedule. Throws schedule_not_found. */
  get(name: string, scope?: TenantScope): Promise<Schedule>
  /** Lists schedules by tenant and name, without their inputs; of all tenants unless one is given. */
  list(options?: ScheduleListOptions): Promise<ScheduleSummary[]>
  /** Removes a schedule. Its jobs and its history stay. One that is declared in code stays removed until the declaration changes. */
  remove(name: string, act?: TenantScope & Actor): Promise<void>
  /** Pauses a schedule until it is resumed. `by` and `reason` are kept for diagnosis. */
  pause(name: string, act?: TenantScope & Actor & { reason?: string }): Promise<Schedule>
  /** Resumes a schedule at its next slot. The slots of the pause are skipped, and can be backfilled. */
  resume(name: string, act?: TenantScope & Actor): Promise<Schedule>
  /** Submits a job now, beside the slots, even if the schedule is paused or another job of it is running. */
  trigger(name: string, act?: TenantScope & Actor): Promise<{ job: JobId }>
  /** Submits the past slots of a range, except those whose job still exists. Refuses a range with more slots than the cap. */
  backfill(name: string, range: BackfillRange, act?: TenantScope & Actor): Promise<Backfilled>
  /** Returns the next slots of a schedule, or of a timing that is not stored. Default: 10, at most 1,000. */
  preview(schedule: string | ScheduleTiming, options?: TenantScope & { count?: number }): Promise<Date[]>
  /** Lists what became of its slots, latest first. The latest 1,000 are kept, for 90 days, even if the schedule is removed. */
  history(name: string, options?: SlotOptions): Promise<Slot[]>
}

/** What schedules need. */
export interface SchedulesOptions {
  store: Store
  config: Config
  flow: Flow
  /** The kind with this name, for a tenant; throws unknown_kind. */
  findKind: (name: string, tenant: string) => Promise<AnyJob>
}

/** Makes the schedules of an engine. */
export function makeSchedules(options: SchedulesOptions): Schedules {
  const { store } = options
  return {
    set: (name, schedule, actor = {}) => set(options, name, schedule as NewSchedule, actor),
    get: async (name, scope = {}) => scheduleOf(await mustFind(store, whichOf(name, scope))),
    list: (given = {}) => list(store, given),
    async remove(name, act = {}) {
      const which = whichOf(name, act)
      const [removed] = await store.contend(removeSchedule, { ...which, by: textOf('by', act.by) })
      if (!removed) throw notFound(which)
    },
    async pause(name, act = {}) {
      const which = whichOf(name, act)
      const words = { by: textOf('by', act.by), reason: textOf('reason', act.reason) }
      const [row] = await store.contend(pauseSchedule, { ...which, ...words })
      if (!row) throw notFound(which)
      return scheduleOf(row)
    },
    resume: (name, act = {}) => resume(store, whichOf(name, act), textOf('by', act.by)),
    trigger: (name, act = {}) => trigger(store, whichOf(name, act), textOf('by', act.by)),
    async backfill(name, range, act = {}) {
      const row = await mustFind(store, whichOf(name, act))
      return backfill(store, row, range, textOf('by', act.by))
    },
    preview: (schedule, given = {}) => preview(store, schedule, given),
    history: (name, given = {}) => history(store, name, given),
  }
}

/** The error for a schedule that does not exist. */
export function notFound({ name, tenant }: Which): HoldfastError {
  return new HoldfastError(
    'schedule_not_found',
    `The tenant ${tenant} has no schedule named ${JSON.stringify(name)}; \`holdfast schedules list\` shows all.`,
  )
}

function whichOf(name: string, scope: TenantScope): Which {
  mustBeObject('options of schedules', scope)
  return { name: scheduleName(name), tenant: scheduleTenant(scope.tenant) }
}

async function mustFind(store: Store, which: Which): Promise<ScheduleRow> {
  const [row] = await store.run(getSchedule, which)
  if (!row) throw notFound(which)
  return row
}

/** Somebody else may change the schedule at the same time; then it is tried again with what they left. */
const mostTries = 10

async function set(
  { store, config, flow, findKind }: SchedulesOptions,
  given: string,
  schedule: NewSchedule,
  { by }: Actor,
): Promise<Schedule> {
  mustBeObject('schedule', schedule)
  const name = scheduleName(given)
  const tenant = scheduleTenant(schedule.tenant)
  const timing = checkTiming(schedule as GivenTiming)
  const job = await kindOf(schedule.kind, tenant, findKind)
  const { input } = await prepareThrough({ config, flow }, { job, input: schedule.input, options: { tenant } })
  const kind = kindParts(job, config.crashBudget)
  const definition: Definition = { ...timing, ...kind, name, tenant, input: String(input) }
  const most = config.schedulesPerTenant
  for (let tries = 1; tries <= mostTries; tries++) {
    // slots that are due are decided by the definition that they were due under
    await tickOne(store, config.scheduleMissedAfterMs, { tenant, name })
    const [before] = await store.run(getSchedule, { name, tenant })
    const now = before?.now ?? (await timeOf(store))
    const nextAt = firstSlot(definition, now.getTime())
    const params = { ...definition, nextAt, revision: before?.revision ?? null, declared: null, most }
    const [row] = await store.contend(setSchedule, { ...params, by: textOf('by', by) })
    if (row) return scheduleOf(row)
    if (!before && tries > 1) throw tooMany(tenant, most)
  }
  throw conflict(name)
}

function conflict(name: string): HoldfastError {
  return new HoldfastError('schedule_conflict', `The schedule ${name} is being changed by others; try again.`)
}

function tooMany(tenant: string, most: number): HoldfastError {
  return new HoldfastError(
    'too_many_schedules',
    `The tenant ${tenant} has ${most} schedules, which is the limit (setting schedulesPerTenant); remove some first.`,
  )
}

async function kindOf(kind: AnyJob | string, tenant: string, findKind: SchedulesOptions['findKind']): Promise<AnyJob> {
  if (isJob(kind)) return kind
  return typeof kind === 'string'
    ? findKind(kind, tenant)
    : invalid('needs a `kind`: a value that defineJob returned, or the name of a registered kind')
}

async function timeOf(store: Store): Promise<Date> {
  const [row] = await store.run(databaseTime, {})
  return row?.now ?? new Date()
}

async function list(store: Store, options: ScheduleListOptions): Promise<ScheduleSummary[]> {
  mustBeObject('options of schedules.list', options)
  const { after, limit = 1_000 } = options
  if (after !== undefined) mustBeObject('after', after)
  const tenant = textOf('tenant', options.tenant)
  const page = {
    kind: textOf('kind', options.kind),
    after: { tenant: textOf('tenant', after?.tenant) ?? '', name: textOf('name', after?.name) ?? '' },
    limit: limitOf(limit, 1_000),
  }
  // one of another tenant says nothing about where in this one to start
  const name = page.after.tenant === '' || page.after.tenant === tenant ? page.after.name : ''
  const rows =
    tenant === null
      ? await store.run(listSchedules, page)
      : await store.run(listSchedulesOfTenant, { ...page, tenant, after: { tenant, name } })
  return rows.map(summaryOf)
}

async function resume(store: Store, which: Which, by: string | null): Promise<Schedule> {
  for (let tries = 1; tries <= mostTries; tries++) {
    const row = await mustFind(store, which)
    if (row.paused_at === null) return scheduleOf(row)
    const [resumed] = await store.contend(resumeSchedule, { ...which, by, revision: row.revision, ...afterPause(row) })
    if (resumed) return scheduleOf(resumed)
  }
  throw conflict(which.name)
}

/** A tick or another trigger may change its last job meanwhile; then the statement might not see that job, and is sent again. */
async function trigger(store: Store, which: Which, by: string | null): Promise<{ job: JobId }> {
  for (let tries = 1; tries <= mostTries; tries++) {
    const { last_job_id: lastJobId } = await mustFind(store, which)
    const [row] = await store.contend(triggerSchedule, { ...which, lastJobId, jobId: freshJobId(), by })
    if (row) return { job: row.job_id as JobId }
  }
  throw conflict(which.name)
}

/** The next slot after a pause, and the slots that the pause skipped. */
function afterPause(row: ScheduleRow) {
  const { next_at, now } = row
  if (next_at === null || next_at > now) return { nextAt: next_at, skipped: null }
  const slots = slotsOf(timingOf(row))
  const { count, lastMs } = slots.between(next_at.getTime(), now.getTime(), mostCounted)
  const nextMs = slots.next(now.getTime())
  return {
    nextAt: nextMs === null ? null : new Date(nextMs),
    skipped: lastMs === null ? null : { from: next_at, to: new Date(lastMs), count },
  }
}

async function preview(
  store: Store,
  schedule: string | ScheduleTiming,
  { count = 10, ...scope }: TenantScope & { count?: number },
): Promise<Date[]> {
  const most = wholeOf('count', count, 1_000)
  const row = typeof schedule === 'string' ? await mustFind(store, whichOf(schedule, scope)) : null
  if (!row) refuseUnknown('schedules.preview', schedule, ofTiming)
  const timing = row ? timingOf(row) : checkTiming(schedule as GivenTiming)
  const now = row?.now ?? (await timeOf(store))
  return walk(slotsOf(timing), { fromMs: now.getTime() + 1, toMs: Number.POSITIVE_INFINITY, most })
}

async function history(store: Store, name: string, { before, limit = 100, ...scope }: SlotOptions): Promise<Slot[]> {
  const which = whichOf(name, scope)
  if (before !== undefined && !(before instanceof Date && Number.isFinite(before.getTime())))
    throw new HoldfastError('option_invalid', 'The option before must be a valid Date.')
  const rows = await store.run(listSlots, { ...which, before: before ?? null, limit: limitOf(limit, 1_000) })
  if (rows.length === 0 && before === undefined) await mustFind(store, which)
  return rows.map(slotOfRow)
}
