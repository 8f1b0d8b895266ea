import type { BackfillRange } from '../../schedule/backfill.ts'
import type { NewSchedule } from '../../schedule/schedule.ts'
import { byCaller, type Caller } from '../caller.ts'
import { positionIn } from '../cursor.ts'
import { json, nothing, operation } from '../operation.ts'
import { cursor, id, inputTime, limit, name, next, tenant, text, time, whole } from '../schemas/primitives.ts'
import { newSchedule, schedule, scheduleSummary, slot } from '../schemas/schedule.ts'
import { scopeFor, tenantFor } from '../tenant-check.ts'
import { z } from '../zod.ts'
import { linkTo } from './jobs.ts'

const byName = z.strictObject({ name })
const ofTenant = z.strictObject({ tenant: tenant.optional() })
const tag = 'schedules'

/** The tenant of a schedule: that of the key, or the one that is asked for. */
function ownerOf(caller: Caller, asked: string | undefined): { tenant: string } {
  return { tenant: tenantFor(caller, asked) ?? 'default' }
}

function actOf(caller: Caller, asked: string | undefined): { tenant: string; by?: string } {
  return { ...ownerOf(caller, asked), ...byCaller(caller) }
}

/** Operations that show schedules. */
const readOperations = [
  operation({
    id: 'listSchedules',
    method: 'get',
    path: '/v1/schedules',
    tag,
    summary: 'List schedules',
    about: 'By tenant and name, without inputs. A tenant key sees only its own schedules.',
    scope: 'read',
    isScan: true,
    query: z.strictObject({
      tenant: tenant.optional(),
      kind: name.optional(),
      limit: limit.optional(),
      cursor: cursor.optional(),
    }),
    answers: {
      200: { about: 'A page of schedules.', schema: z.object({ schedules: z.array(scheduleSummary), next }) },
    },
    async handle({ hf, gateway, caller, query, request }) {
      const after = await positionIn(gateway.cursorTokens, 'schedules', query.cursor)
      const most = query.limit ?? 100
      const found = await hf.schedules.list({
        ...scopeFor(caller, query.tenant),
        limit: most,
        ...(query.kind === undefined ? {} : { kind: query.kind }),
        ...(after === undefined ? {} : { after: JSON.parse(after) as { tenant: string; name: string } }),
      })
      const last = found.length < most ? undefined : found.at(-1)
      const position = last && JSON.stringify({ tenant: last.tenant, name: last.name })
      const more = position ? await gateway.cursorTokens.seal(`schedules ${position}`) : null
      return json(200, { schedules: found, next: more }, linkTo(request, more))
    },
  }),
  operation({
    id: 'getSchedule',
    method: 'get',
    path: '/v1/schedules/{name}',
    tag,
    summary: 'Get a schedule',
    scope: 'read',
    params: byName,
    query: ofTenant,
    answers: { 200: { about: 'The schedule.', schema: schedule } },
    problems: ['schedule_not_found'],
    handle: async ({ hf, caller, params, query }) =>
      json(200, await hf.schedules.get(params.name, ownerOf(caller, query.tenant))),
  }),
  operation({
    id: 'previewSchedule',
    method: 'get',
    path: '/v1/schedules/{name}/preview',
    tag,
    summary: 'Preview the next slots of a schedule',
    scope: 'read',
    params: byName,
    query: z.strictObject({ tenant: tenant.optional(), count: whole(1, 1_000).optional() }),
    answers: { 200: { about: 'The next slots.', schema: z.object({ slots: z.array(time) }) } },
    problems: ['schedule_not_found'],
    async handle({ hf, caller, params, query }) {
      const count = query.count === undefined ? {} : { count: query.count }
      const slots = await hf.schedules.preview(params.name, { ...ownerOf(caller, query.tenant), ...count })
      return json(200, { slots })
    },
  }),
  operation({
    id: 'listSlots',
    method: 'get',
    path: '/v1/schedules/{name}/slots',
    tag,
    summary: 'List what became of the slots of a schedule',
    about: 'Latest first. The latest 1,000 slots are kept, also after the schedule was removed.',
    scope: 'read',
    isScan: true,
    params: byName,
    query: z.strictObject({ tenant: tenant.optional(), limit: limit.optional(), cursor: cursor.optional() }),
    answers: { 200: { about: 'A page of slots.', schema: z.object({ slots: z.array(slot), next }) } },
    problems: ['schedule_not_found'],
    async handle({ hf, gateway, caller, params, query, request }) {
      const before = await positionIn(gateway.cursorTokens, 'slots', query.cursor)
      const most = query.limit ?? 100
      const slots = await hf.schedules.history(params.name, {
        ...ownerOf(caller, query.tenant),
        limit: most,
        ...(before === undefined ? {} : { before: new Date(before) }),
      })
      const last = slots.length < most ? undefined : slots.at(-1)
      const more = last ? await gateway.cursorTokens.seal(`slots ${last.slotAt.toISOString()}`) : null
      return json(200, { slots, next: more }, linkTo(request, more))
    },
  }),
]

/** Operations that change schedules. */
const changeOperations = [
  operation({
    id: 'setSchedule',
    method: 'post',
    path: '/v1/schedules',
    tag,
    summary: 'Set a schedule',
    about:
      'Creates the schedule, or replaces its definition. Its pause, history and last job stay, and its next slot if the timing is the same.',
    scope: 'operate',
    body: newSchedule,
    bodySize: 'input',
    answers: { 200: { about: 'The schedule.', schema: schedule } },
    problems: [
      'schedule_invalid',
      'schedule_conflict',
      'too_many_schedules',
      'unknown_kind',
      'input_invalid',
      'input_too_large',
      'not_storable',
      'option_invalid',
    ],
    async handle({ hf, gateway, caller, body }) {
      const { name: called, kind, tenant: asked, ...rest } = body
      const owner = ownerOf(caller, asked)
      const job = await gateway.kinds.named(kind, owner.tenant)
      const given = { ...rest, ...owner, kind: job } as NewSchedule
      return json(200, await hf.schedules.set(called, given, byCaller(caller)))
    },
  }),
  operation({
    id: 'removeSchedule',
    method: 'delete',
    path: '/v1/schedules/{name}',
    tag,
    summary: 'Remove a schedule',
    about: 'Its jobs and its history stay.',
    scope: 'operate',
    params: byName,
    query: ofTenant,
    answers: { 204: { about: 'The schedule is removed.' } },
    problems: ['schedule_not_found'],
    async handle({ hf, caller, params, query }) {
      await hf.schedules.remove(params.name, actOf(caller, query.tenant))
      return nothing()
    },
  }),
  operation({
    id: 'pauseSchedule',
    method: 'post',
    path: '/v1/schedules/{name}/pause',
    tag,
    summary: 'Pause a schedule',
    scope: 'operate',
    params: byName,
    query: ofTenant,
    body: z.strictObject({ reason: text(1_000).optional() }),
    answers: { 200: { about: 'The paused schedule.', schema: schedule } },
    problems: ['schedule_not_found'],
    handle: async ({ hf, caller, params, query, body }) =>
      json(200, await hf.schedules.pause(params.name, { ...(body as object), ...actOf(caller, query.tenant) })),
  }),
  operation({
    id: 'resumeSchedule',
    method: 'post',
    path: '/v1/schedules/{name}/resume',
    tag,
    summary: 'Resume a schedule',
    about: 'It goes on with its next slot. The slots of the pause are skipped, and can be backfilled.',
    scope: 'operate',
    params: byName,
    query: ofTenant,
    answers: { 200: { about: 'The resumed schedule.', schema: schedule } },
    problems: ['schedule_not_found', 'schedule_conflict'],
    handle: async ({ hf, caller, params, query }) =>
      json(200, await hf.schedules.resume(params.name, actOf(caller, query.tenant))),
  }),
  operation({
    id: 'triggerSchedule',
    method: 'post',
    path: '/v1/schedules/{name}/trigger',
    tag,
    summary: 'Trigger a schedule now',
    about: 'Submits a job beside the slots, even if the schedule is paused or another job of it is running.',
    scope: 'operate',
    params: byName,
    query: ofTenant,
    answers: { 202: { about: 'The job is stored.', schema: z.object({ job: id }) } },
    problems: ['schedule_not_found'],
    async handle({ hf, caller, params, query }) {
      const { job } = await hf.schedules.trigger(params.name, actOf(caller, query.tenant))
      return json(202, { job }, { location: `/v1/jobs/${job}` })
    },
  }),
  operation({
    id: 'backfillSchedule',
    method: 'post',
    path: '/v1/schedules/{name}/backfill',
    tag,
    summary: 'Backfill past slots of a schedule',
    about: 'Submits the slots of a range, all or none, except those whose job still exists.',
    scope: 'operate',
    params: byName,
    query: ofTenant,
    body: z.strictObject({
      from: inputTime,
      to: inputTime.optional(),
      cap: z
        .number()
        .int()
        .min(1)
        .max(10_000)
        .optional()
        .openapi({ description: 'How many slots the range may have.' }),
    }),
    answers: {
      200: {
        about: 'The jobs are stored.',
        schema: z.object({ submitted: z.number().int(), existing: z.number().int() }).openapi('Backfilled'),
      },
    },
    problems: ['schedule_not_found', 'option_invalid'],
    handle: async ({ hf, caller, params, query, body }) =>
      json(200, await hf.schedules.backfill(params.name, body as BackfillRange, actOf(caller, query.tenant))),
  }),
]

/** Operations on schedules. */
export const scheduleOperations = [...readOperations, ...changeOperations]
