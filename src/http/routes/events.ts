import { HoldfastError } from '../../errors/errors.ts'
import { typesOf } from '../../job/event-type.ts'
import { tenantFor } from '../caller.ts'
import { type Given, json, operation } from '../operation.ts'
import { logEvent, placeBetween, showLogEvent } from '../schemas/event.ts'
import { flag, id, limit, list, next, tenant } from '../schemas/words.ts'
import { stream } from '../sse.ts'
import { z } from '../zod.ts'

const filters = {
  types: list('Which events: job.failed, job.*, several with commas between.').optional(),
  tenant: tenant.optional(),
  job: id.optional().openapi({ description: 'Only those of this job.' }),
  items: flag.optional().openapi({
    description: 'Whether also those of the items of fan-outs. Default: only if `job` names one.',
  }),
  after: z.string().max(1_000).optional().openapi({ description: 'Only those behind this one: the `id` of an event.' }),
}

/** Reading the log, page by page or as it grows. */
export const eventOperations = [
  operation({
    id: 'listEvents',
    method: 'get',
    path: '/v1/events',
    tag: 'events',
    summary: 'List events',
    about:
      'Oldest first, from a place in the log on; without `after`, from its beginning. A page looks at a bounded number of events, those of a tenant if the key is of one, so it may be short, even empty, although more comes: go on until `next` is null.',
    scope: 'read',
    query: z.strictObject({ ...filters, limit: limit.optional() }),
    answers: {
      200: {
        about: 'A page of events. `next` is the `after` of the next page.',
        schema: z.object({ events: z.array(logEvent), next }),
      },
    },
    problems: ['event_type_unknown'],
    async handle(given) {
      const { hf, door, caller, query } = given
      const { types, tenant: owner, job, items } = filterOf(given)
      const after = (await afterOf(given, query.after)) ?? 0
      const wanted = watchOf(types, owner, job)
      const page = await hf.events.page({ ...wanted, items, after, limit: query.limit ?? 100 })
      const events = await Promise.all(page.events.map((event) => showLogEvent(door.seal, caller, event)))
      return json(200, { events, next: page.next === null ? null : await placeBetween(door.seal, caller, page.next) })
    },
  }),
  operation({
    id: 'streamEvents',
    method: 'get',
    path: '/v1/events/stream',
    tag: 'events',
    summary: 'Stream events',
    about:
      'Server-sent events as they happen. A client that comes back with `Last-Event-ID`, as browsers do by themselves, misses nothing and gets nothing twice.',
    scope: 'read',
    query: z.strictObject(filters),
    headers: z.object({ 'last-event-id': z.string().max(1_000).optional() }),
    answers: {
      200: {
        about: 'A stream; each event has its `id`, its type as `event`, and the event as JSON in `data`.',
        type: 'text/event-stream',
      },
    },
    problems: ['event_type_unknown', 'waits_exhausted'],
    async handle(given) {
      const { door, caller, query, headers } = given
      const done = door.limits.wait(caller)
      const counted = door.meter.listens()
      const leaving = new AbortController()
      const onEnd = () => {
        leaving.abort()
        done()
        counted()
      }
      try {
        const after = await afterOf(given, headers['last-event-id'] ?? query.after)
        const { types, tenant: owner, job, items } = filterOf(given)
        const { events, from } = await door.live.listen(
          { types: types && new Set(types), tenant: owner, job, items },
          after,
          AbortSignal.any([given.signal, leaving.signal]),
        )
        return stream({
          events,
          show: (event) => showLogEvent(door.seal, caller, event),
          from: await placeBetween(door.seal, caller, from),
          isWelcome: () => door.keyring.isStillGood(given.request),
          onEnd,
        })
      } catch (error) {
        onEnd()
        throw error
      }
    },
  }),
]

type Asked = Given<
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
    `There is no event of type ${JSON.stringify(found.unknown)}; job.* means those of jobs.`,
  )
}

function watchOf(types: string[] | null, tenant: string | undefined, job: string | undefined) {
  return {
    ...(types === null ? {} : { types }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(job === undefined ? {} : { job }),
  }
}

async function afterOf({ door, caller }: Given, given: string | undefined): Promise<number | null> {
  if (given === undefined || given === '') return null
  if (caller.tenant === null && /^\d{1,15}$/.test(given)) return Number(given)
  const [, seq] = /^event (\d+)/.exec((await door.seal.open(given)) ?? '') ?? []
  if (seq !== undefined) return Number(seq)
  throw new HoldfastError('request_invalid', 'That is no place in the log; pass the `id` of an event.')
}
