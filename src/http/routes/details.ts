import { HoldfastError } from '../../errors/errors.ts'
import { positionIn } from '../cursor.ts'
import { type Call, json, operation } from '../operation.ts'
import { digits, showEvent, timelineEvent } from '../schemas/event.ts'
import { byId, cursor, id, jobError, limit, next, state, time } from '../schemas/primitives.ts'
import { scopeFor } from '../tenant-check.ts'
import { z } from '../zod.ts'
import { linkTo } from './jobs.ts'

const fanOut = z
  .object({
    stage: z.number().int(),
    total: z.number().int().nullable().openapi({ description: 'Null until all items have been added.' }),
    succeeded: z.number().int(),
    failed: z.number().int(),
    cancelled: z.number().int(),
    running: z.number().int(),
    queued: z.number().int(),
    isComplete: z.union([z.boolean(), z.literal('unknown')]),
    perSecond: z.number(),
    etaMs: z.number().nullable(),
    ageMs: z.number(),
  })
  .openapi('FanOut')

const item = z
  .object({
    id,
    key: z.string(),
    position: z.number().int(),
    stage: z.number().int(),
    state,
    attempt: z.number().int(),
    error: jobError.nullable(),
    since: time,
  })
  .openapi('Item')

/** Operations on the details of a job: its timeline, its fan-outs and their items. */
export const detailOperations = [
  operation({
    id: 'getTimeline',
    method: 'get',
    path: '/v1/jobs/{id}/timeline',
    tag: 'jobs',
    summary: 'Get the timeline of a job',
    about: 'All events of the job, oldest first.',
    scope: 'read',
    isScan: true,
    params: byId,
    query: z.strictObject({ limit: limit.optional(), cursor: cursor.optional() }),
    answers: { 200: { about: 'A page of events.', schema: z.object({ events: z.array(timelineEvent), next }) } },
    problems: ['job_not_found', 'job_gone'],
    async handle(call) {
      await mustSee(call)
      const { hf, gateway, params, query, request, caller } = call
      const after = Number((await positionIn(gateway.cursorTokens, 'timeline', query.cursor)) ?? 0)
      const most = query.limit ?? 1_000
      const events = await hf.timeline(params.id, { after, limit: most })
      const nextCursor =
        events.length < most ? null : await gateway.cursorTokens.seal(`timeline ${digits(events.at(-1)?.seq ?? 0)}`)
      const shown = await Promise.all(events.map((event) => showEvent(gateway.cursorTokens, caller, event)))
      return json(200, { events: shown, next: nextCursor }, linkTo(request, nextCursor))
    },
  }),
  operation({
    id: 'getFanOuts',
    method: 'get',
    path: '/v1/jobs/{id}/fan-outs',
    tag: 'jobs',
    summary: 'Get the fan-outs of a job',
    about: 'Shows the progress of each fan-out.',
    scope: 'read',
    isScan: true,
    params: byId,
    answers: { 200: { about: 'Fan-outs by stage.', schema: z.object({ fanOuts: z.array(fanOut) }) } },
    problems: ['job_not_found', 'job_gone'],
    async handle(call) {
      await mustSee(call)
      return json(200, { fanOuts: await call.hf.fanOuts(call.params.id) })
    },
  }),
  operation({
    id: 'listItems',
    method: 'get',
    path: '/v1/jobs/{id}/items',
    tag: 'jobs',
    summary: 'List the items of a job',
    about: 'Items of its fan-outs, by stage and position. Each item is itself a job with its own id.',
    scope: 'read',
    isScan: true,
    params: byId,
    query: z.strictObject({ state: state.optional(), limit: limit.optional(), cursor: cursor.optional() }),
    answers: { 200: { about: 'A page of items.', schema: z.object({ items: z.array(item), next }) } },
    problems: ['job_not_found', 'job_gone'],
    async handle(call) {
      await mustSee(call)
      const { hf, gateway, params, query, request } = call
      const after = await positionIn(gateway.cursorTokens, 'items', query.cursor)
      const most = query.limit ?? 100
      const items = await hf.items(params.id, {
        limit: most,
        ...(query.state === undefined ? {} : { state: query.state }),
        ...(after === undefined ? {} : { after: JSON.parse(after) }),
      })
      const { stage, position, id: last } = items.at(-1) ?? {}
      const nextCursor =
        items.length < most
          ? null
          : await gateway.cursorTokens.seal(`items ${JSON.stringify({ stage, position, id: last })}`)
      return json(200, { items, next: nextCursor }, linkTo(request, nextCursor))
    },
  }),
]

/** Throws if the caller may not see this job. A job never changes its tenant, so this can be checked first. */
export async function mustSee({ hf, params, caller }: Call<{ id: string }>): Promise<void> {
  if ((await hf.state(params.id, scopeFor(caller))) === null)
    throw new HoldfastError('job_not_found', `There is no job ${params.id}.`)
}
