import type { Delivery } from '../engine/deliveries.ts'
import type { Endpoint } from '../engine/webhooks.ts'
import type { DeliveryState } from '../job/delivery-state.ts'
import { typeWords } from './event-words.ts'
import { shortId } from './pick-job.ts'
import { type Cell, table } from './table.ts'
import { type Look, oneLine, paint } from './terminal.ts'
import { ageWords, lengthWords } from './time-words.ts'

/** How an endpoint is, and how that looks. */
export function endpointState(
  { disabledAt, disabledWhy, failingSince }: Pick<Endpoint, 'disabledAt' | 'disabledWhy' | 'failingSince'>,
  nowMs = Date.now(),
): { text: string; look: Look } {
  if (disabledAt) return { text: `off: ${disabledWhy ?? 'nobody said why'}`, look: 'red' }
  if (failingSince) return { text: `failing for ${lengthWords(nowMs - failingSince.getTime())}`, look: 'yellow' }
  return { text: 'on', look: 'green' }
}

/** What there is to say of an endpoint. Values of headers are often credentials, so only their names are told. */
export function endpointLines(endpoint: Endpoint & { secret?: string }): string[] {
  const { text, look } = endpointState(endpoint)
  const headers = Object.keys(endpoint.headers).join(', ')
  const facts: [string, string | null | undefined][] = [
    ['endpoint', endpoint.id],
    ['tenant', endpoint.tenant],
    ['url', endpoint.url],
    ['types', typeWords(endpoint.types)],
    ['state', paint(look, oneLine(text))],
    ['off since', endpoint.disabledAt?.toISOString()],
    ['headers', headers],
    ['note', endpoint.note && oneLine(endpoint.note)],
    ['created', endpoint.createdAt.toISOString()],
    [
      'signed',
      endpoint.oldSecretUntil && `with the secret before, too, until ${endpoint.oldSecretUntil.toISOString()}`,
    ],
    ['secret', endpoint.secret],
  ]
  return facts.filter(([, value]) => value).map(([name, value]) => `${paint('bold', name.padEnd(9))} ${value}`)
}

/** How a state of a delivery looks. */
const looks: Record<DeliveryState, Look> = { pending: 'cyan', delivered: 'green', dead: 'red' }

const heads = ['ID', 'EVENT', 'JOB', 'ENDPOINT', 'STATE', 'TRIES', 'STATUS', 'TOOK', 'AGE', 'ERROR']

/** Deliveries as a table. */
export function deliveryTable(deliveries: readonly Delivery[]): string[] {
  return table(heads, deliveries.map(rowOf))
}

function rowOf(delivery: Delivery): Cell[] {
  const { id, type, job, endpoint, state, tries, status, ms, createdAt, error } = delivery
  return [
    { text: id },
    { text: type },
    { text: job === null ? '' : shortId(job) },
    { text: endpoint === null ? "the job's" : shortId(endpoint) },
    { text: stateWords(delivery), look: looks[state] },
    { text: String(tries) },
    { text: status === null ? '' : String(status) },
    { text: ms === null ? '' : lengthWords(ms) },
    { text: ageWords(createdAt) },
    { text: state === 'delivered' ? '' : (error ?? ''), look: 'dim' },
  ]
}

function stateWords({ state, nextAt, tries }: Delivery, nowMs = Date.now()): string {
  const inMs = nextAt ? nextAt.getTime() - nowMs : 0
  if (state !== 'pending' || tries === 0 || inMs < 1_000) return state
  return `${state} (again in ${lengthWords(inMs)})`
}
