import { HoldfastError } from '../../errors/errors.ts'
import { scopeFor } from '../caller.ts'
import { type Given, json, operation } from '../operation.ts'
import { placeIn } from '../place.ts'
import { digits, showEvent, timelineEvent } from '../schemas/event.ts'
import { byId, cursor, id, jobError, limit, next, state, time } from '../schemas/words.ts'
import { z } from '../zod.ts'
import { linkTo } from './jobs.ts'

const fanOut = z
  .object({
    stage: z.number().int(),
    total: z.number().int().nullable().openapi({ description: 'Null until all items are there.' }),
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

/** What lies behind a job: its timeline, its fan-outs and their items. */
export const detailOperations = [
  operation({
    id: 'getTimeline',
    method: 'get',
    path: '/v1/jobs/{id}/timeline',
    tag: 'jobs',
    summary: 'Get the timeline of a job',
    about: 'Everything that happened to it, oldest first.',
    scope: 'read',
    params: byId,
    query: z.strictObject({ limit: limit.optional(), cursor: cursor.optional() }),
    answers: { 200: { about: 'A page of events.', schema: z.object({ events: z.array(timelineEvent), next }) } },
    problems: ['job_not_found'],
    async handle(given) {
      await mustSee(given)
      const { hf, door, params, query, request, caller } = given
      const after = Number((await placeIn(door.seal, 'timeline', query.cursor)) ?? 0)
      const most = query.limit ?? 1_000
      const events = await hf.timeline(params.id, { after, limit: most })
      const nextPlace =
        events.length < most ? null : await door.seal.seal(`timeline ${digits(events.at(-1)?.seq ?? 0)}`)
      const shown = await Promise.all(events.map((event) => showEvent(door.seal, caller, event)))
      return json(200, { events: shown, next: nextPlace }, linkTo(request, nextPlace))
    },
  }),
  operation({
    id: 'getFanOuts',
    method: 'get',
    path: '/v1/jobs/{id}/fan-outs',
    tag: 'jobs',
    summary: 'Get the fan-outs of a job',
    about: 'How far each is.',
    scope: 'read',
    params: byId,
    answers: { 200: { about: 'By stage.', schema: z.object({ fanOuts: z.array(fanOut) }) } },
    problems: ['job_not_found'],
    async handle(given) {
      await mustSee(given)
      return json(200, { fanOuts: await given.hf.fanOuts(given.params.id) })
    },
  }),
  operation({
    id: 'listItems',
    method: 'get',
    path: '/v1/jobs/{id}/items',
    tag: 'jobs',
    summary: 'List the items of a job',
    about: 'Those of its fan-outs, by stage and position. Each is a job of its own, found by its id.',
    scope: 'read',
    params: byId,
    query: z.strictObject({ state: state.optional(), limit: limit.optional(), cursor: cursor.optional() }),
    answers: { 200: { about: 'A page of items.', schema: z.object({ items: z.array(item), next }) } },
    problems: ['job_not_found'],
    async handle(given) {
      await mustSee(given)
      const { hf, door, params, query, request } = given
      const place = await placeIn(door.seal, 'items', query.cursor)
      const most = query.limit ?? 100
      const items = await hf.items(params.id, {
        limit: most,
        ...(query.state === undefined ? {} : { state: query.state }),
        ...(place === undefined ? {} : { after: JSON.parse(place) }),
      })
      const { stage, position, id: last } = items.at(-1) ?? {}
      const nextPlace =
        items.length < most ? null : await door.seal.seal(`items ${JSON.stringify({ stage, position, id: last })}`)
      return json(200, { items, next: nextPlace }, linkTo(request, nextPlace))
    },
  }),
]

/** Throws if the caller may not know of this job. A job never changes its tenant, so this can be asked first. */
export async function mustSee({ hf, params, caller }: Given<{ id: string }>): Promise<void> {
  if ((await hf.state(params.id, scopeFor(caller))) === null)
    throw new HoldfastError('job_not_found', `There is no job ${params.id}.`)
}
