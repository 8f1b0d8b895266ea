import type { Replay } from '../../events/replay.ts'
import { byCaller } from '../caller.ts'
import { json, nothing, operation } from '../operation.ts'
import { logEvent, showLogEvent } from '../schemas/event.ts'
import { inputTime, limit, name, time, whole } from '../schemas/primitives.ts'
import { z } from '../zod.ts'

const group = z
  .object({
    name: z.string(),
    types: z.array(z.string()).nullable(),
    items: z.boolean().openapi({ description: 'Whether the group also reads events of fan-out items.' }),
    partitions: z.number().int(),
    createdAt: time,
    seq: z.number().int(),
    readers: z.number().int(),
    held: z.number().int(),
    parked: z.number().int(),
    behind: z.number().openapi({ description: 'Number of log positions the group is behind.' }),
    behindMs: z.number(),
    heldBy: z
      .object({
        pid: z.number().int().nullable(),
        application: z.string().nullable(),
        prepared: z.string().nullable().openapi({ description: 'The name of a prepared transaction.' }),
        forMs: z.number(),
      })
      .nullable()
      .openapi({
        description:
          'The open transaction that holds the group back. It reads later events once that transaction ends.',
      }),
    failing: z.array(z.object({ seq: z.number().int(), failures: z.number().int(), error: z.string().nullable() })),
  })
  .openapi('Group')

const parked = z
  .object({ event: logEvent, error: z.string(), failures: z.number().int(), parkedAt: time, replayAt: time.nullable() })
  .openapi('ParkedEvent')

const byName = z.strictObject({ name })

/** Operations on groups of readers. They require a key for all tenants, because each group reads the events of all tenants. */
export const groupOperations = [
  operation({
    id: 'listGroups',
    method: 'get',
    path: '/v1/groups',
    tag: 'events',
    summary: 'List event groups',
    scope: 'read',
    isScan: true,
    isForAll: true,
    answers: { 200: { about: 'All groups.', schema: z.object({ groups: z.array(group) }) } },
    handle: async ({ hf }) => json(200, { groups: await hf.events.groups() }),
  }),
  operation({
    id: 'listParked',
    method: 'get',
    path: '/v1/groups/{name}/parked',
    tag: 'events',
    summary: 'List the parked events of a group',
    about: 'Events that the group failed to handle. For the next page, pass the `id` of the last event as `after`.',
    scope: 'read',
    isScan: true,
    isForAll: true,
    params: byName,
    query: z.strictObject({ after: whole(0, 999_999_999_999_999).optional(), limit: limit.optional() }),
    answers: { 200: { about: 'A page of parked events.', schema: z.object({ parked: z.array(parked) }) } },
    problems: ['group_not_found', 'group_invalid'],
    async handle({ hf, gateway, caller, params, query }) {
      const rows = await hf.events.parked(params.name, query as object)
      const shown = await Promise.all(
        rows.map(async (row) => ({ ...row, event: await showLogEvent(gateway.cursorTokens, caller, row.event) })),
      )
      return json(200, { parked: shown })
    },
  }),
  operation({
    id: 'replayGroup',
    method: 'post',
    path: '/v1/groups/{name}/replay',
    tag: 'events',
    summary: 'Replay events to a group',
    about: 'Replays parked events, or everything from a position in the log.',
    scope: 'operate',
    isForAll: true,
    params: byName,
    body: z.union([
      z.strictObject({ parked: z.union([z.literal('all'), z.number().int().min(0)]) }),
      z.strictObject({ from: z.union([z.enum(['beginning', 'now']), inputTime, z.number().int().min(0)]) }),
    ]),
    answers: {
      202: {
        about: 'Number of parked events to replay, or of partitions that were moved.',
        schema: z.object({ replayed: z.number().int() }),
      },
    },
    problems: ['group_not_found', 'group_invalid', 'option_invalid'],
    handle: async ({ hf, caller, params, body }) =>
      json(202, { replayed: await hf.events.replay(params.name, body as Replay, byCaller(caller)) }),
  }),
  operation({
    id: 'forgetGroup',
    method: 'delete',
    path: '/v1/groups/{name}',
    tag: 'events',
    summary: 'Delete a group',
    about: 'The log is no longer retained for this group.',
    scope: 'operate',
    isForAll: true,
    params: byName,
    answers: { 204: { about: 'The group is deleted.' } },
    problems: ['group_not_found', 'group_invalid'],
    async handle({ hf, caller, params }) {
      await hf.events.forget(params.name, byCaller(caller))
      return nothing()
    },
  }),
]
