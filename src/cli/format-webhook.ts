import type { DeliveryState } from '../job/delivery-state.ts'
import type { Delivery } from '../webhooks/deliveries.ts'
import type { Endpoint } from '../webhooks/endpoints.ts'
import { formatType } from './format-event.ts'
import { formatAge, formatDuration } from './format-time.ts'
import { shortId } from './pick-job.ts'
import { type Cell, table } from './table.ts'
import { type Look, oneLine, paint } from './terminal.ts'

/** The state of an endpoint, with its color. */
export function endpointState(
  { disabledAt, disabledWhy, failingSince }: Pick<Endpoint, 'disabledAt' | 'disabledWhy' | 'failingSince'>,
  nowMs = Date.now(),
): { text: string; look: Look } {
  if (disabledAt) return { text: `off: ${disabledWhy ?? 'no reason given'}`, look: 'red' }
  if (failingSince) return { text: `failing for ${formatDuration(nowMs - failingSince.getTime())}`, look: 'yellow' }
  return { text: 'on', look: 'green' }
}

/** An endpoint, as lines. Header values are often credentials, so only their names are shown. */
export function endpointLines(endpoint: Endpoint & { secret?: string }): string[] {
  const { text, look } = endpointState(endpoint)
  const headers = Object.keys(endpoint.headers).join(', ')
  const facts: [string, string | null | undefined][] = [
    ['endpoint', endpoint.id],
    ['tenant', endpoint.tenant],
    ['url', endpoint.url],
    ['types', formatType(endpoint.types)],
    ['state', paint(look, oneLine(text))],
    ['off since', endpoint.disabledAt?.toISOString()],
    ['headers', headers],
    ['note', endpoint.note && oneLine(endpoint.note)],
    ['created', endpoint.createdAt.toISOString()],
    [
      'signed',
      endpoint.oldSecretUntil && `with the previous secret too, until ${endpoint.oldSecretUntil.toISOString()}`,
    ],
    ['secret', endpoint.secret],
  ]
  return facts.filter(([, value]) => value).map(([name, value]) => `${paint('bold', name.padEnd(9))} ${value}`)
}

/** The color of each delivery state. */
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
    { text: formatState(delivery), look: looks[state] },
    { text: String(tries) },
    { text: status === null ? '' : String(status) },
    { text: ms === null ? '' : formatDuration(ms) },
    { text: formatAge(createdAt) },
    { text: state === 'delivered' ? '' : (error ?? ''), look: 'dim' },
  ]
}

function formatState({ state, nextAt, tries }: Delivery, nowMs = Date.now()): string {
  const inMs = nextAt ? nextAt.getTime() - nowMs : 0
  if (state !== 'pending' || tries === 0 || inMs < 1_000) return state
  return `${state} (retry in ${formatDuration(inMs)})`
}
