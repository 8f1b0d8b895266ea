import { HoldfastError } from '../../errors/errors.ts'
import { typesOf } from '../../job/event-type.ts'
import { type Call, json, operation } from '../operation.ts'
import { logEvent, positionBetween, showLogEvent } from '../schemas/event.ts'
import { flag, id, limit, list, next, tenant } from '../schemas/primitives.ts'
import { stream } from '../sse.ts'
import { tenantFor } from '../tenant-check.ts'
import { z } from '../zod.ts'

const filters = {
  types: list('Event types, comma-separated: job.failed, job.*.').optional(),
  tenant: tenant.optional(),
  job: id.optional().openapi({ description: 'Only events of this job.' }),
  items: flag.optional().openapi({
    description: 'Include events of fan-out items. Default: only if `job` is an item.',
  }),
  after: z.string().max(1_000).optional().openapi({ description: 'Only events after this one: the `id` of an event.' }),
}

/** Operations that read the event log, page by page or live. */
export const eventOperations = [
  operation({
    id: 'listEvents',
    method: 'get',
    path: '/v1/events',
    tag: 'events',
    summary: 'List events',
    about:
      'Oldest first, starting after `after` or from the beginning of the log. A page scans a bounded number of events (with a tenant key, only events of that tenant), so it can be short or even empty before the end. Continue until `next` is null.',
    scope: 'read',
    isScan: true,
    query: z.strictObject({ ...filters, limit: limit.optional() }),
    answers: {
      200: {
        about: 'A page of events. Pass `next` as `after` to get the next page.',
        schema: z.object({ events: z.array(logEvent), next }),
      },
    },
    problems: ['event_type_unknown'],
    async handle(call) {
      const { hf, gateway, caller, query } = call
      const { types, tenant: owner, job, items } = filterOf(call)
      const after = (await afterOf(call, query.after)) ?? 0
      const wanted = watchOf(types, owner, job)
      const page = await hf.events.page({ ...wanted, items, after, limit: query.limit ?? 100 })
      const events = await Promise.all(page.events.map((event) => showLogEvent(gateway.cursorTokens, caller, event)))
      return json(200, {
        events,
        next: page.next === null ? null : await positionBetween(gateway.cursorTokens, caller, page.next),
      })
    },
  }),
  operation({
    id: 'streamEvents',
    method: 'get',
    path: '/v1/events/stream',
    tag: 'events',
    summary: 'Stream events',
    about:
      'Sends events as they happen (server-sent events). A client that reconnects with `Last-Event-ID`, as browsers do automatically, misses no event and gets none twice.',
    scope: 'read',
    query: z.strictObject(filters),
    headers: z.object({ 'last-event-id': z.string().max(1_000).optional() }),
    answers: {
      200: {
        about:
          'A stream. Each message has the `id` of the event, its type in `event`, and the event as JSON in `data`.',
        type: 'text/event-stream',
      },
    },
    problems: ['event_type_unknown', 'waits_exhausted'],
    async handle(call) {
      const { gateway, caller, query, headers } = call
      const done = gateway.limits.wait(caller)
      const counted = gateway.meter.listens()
      const leaving = new AbortController()
      const onEnd = () => {
        leaving.abort()
        done()
        counted()
      }
      try {
        const after = await afterOf(call, headers['last-event-id'] ?? query.after)
        const { types, tenant: owner, job, items } = filterOf(call)
        const { events, from } = await gateway.live.listen(
          { types: types && new Set(types), tenant: owner, job, items },
          after,
          AbortSignal.any([call.signal, leaving.signal]),
        )
        return stream({
          events,
          show: (event) => showLogEvent(gateway.cursorTokens, caller, event),
          from: await positionBetween(gateway.cursorTokens, caller, from),
          isWelcome: () => gateway.keyring.isStillGood(call.request),
          onEnd,
          stalledMs: gateway.sendMs,
        })
      } catch (error) {
        onEnd()
        throw error
      }
    },
  }),
]

type Asked = Call<
  unknown,
  { types?: string[] | undefined; tenant?: string | undefined; job?: string | undefined; items?: boolean | undefined }
>

function filterOf({ caller, query }: Asked) {
  return {
    types: query.types ? known(query.types) : null,
    tenant: tenantFor(caller, query.tenant),
    job: query.job?.toLowerCase(),
    items: query.items ?? false,
  }
}

function known(patterns: string[]): string[] {
  const found = typesOf(patterns)
  if ('types' in found) return found.types
  throw new HoldfastError(
    'event_type_unknown',
    `There is no event type ${JSON.stringify(found.unknown)}. Use job.* for all job events.`,
  )
}

function watchOf(types: string[] | null, tenant: string | undefined, job: string | undefined) {
  return {
    ...(types === null ? {} : { types }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(job === undefined ? {} : { job }),
  }
}

async function afterOf({ gateway, caller }: Call, from: string | undefined): Promise<number | null> {
  if (from === undefined || from === '') return null
  if (caller.tenant === null && /^\d{1,15}$/.test(from)) return Number(from)
  const [, seq] = /^event (\d+)/.exec((await gateway.cursorTokens.open(from)) ?? '') ?? []
  if (seq !== undefined) return Number(seq)
  throw new HoldfastError('request_invalid', 'This is not a position in the log; pass the `id` of an event.')
}
