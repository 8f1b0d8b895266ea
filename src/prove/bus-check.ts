import type { DeliveryRow, ParkedRow, WantedRow } from './bus.sql.ts'
import type { Handling } from './reader.ts'
import type { Receipt } from './webhook-receiver.ts'

/** What the event readers and the webhooks of a finished cell left behind. */
export interface BusEvidence {
  /** Every event that the prover's group wants, in order. */
  wanted: WantedRow[]
  parked: ParkedRow[]
  handlings: readonly Handling[]
  deliveries: DeliveryRow[]
  /** Events that have no delivery to a receiver that wants them. */
  unplanned: { seq: number; type: string; wanted_by: string }[]
  receipts: readonly Receipt[]
  /** The processes that were killed. */
  killed: ReadonlySet<number>
}

/** Everything that is wrong with events and webhooks, each as a sentence. */
export function findBusWrongs(evidence: BusEvidence): string[] {
  return [
    ...unhandled(evidence),
    ...outOfOrder(evidence),
    ...evidence.unplanned.map(
      ({ seq, type, wanted_by }) => `the event ${seq} (${type}) was never sent to ${wanted_by}`,
    ),
    ...wrongDeliveries(evidence),
    ...wrongReceipts(evidence),
  ]
}

/** No event that the group wants may be skipped: it is handled, or parked with the reason. */
function unhandled({ wanted, parked, handlings }: BusEvidence): string[] {
  const handled = new Set(handlings.filter(({ outcome }) => outcome === 'handled').map(({ seq }) => seq))
  const setAside = new Set(parked.filter(({ error }) => error !== '').map(({ seq }) => seq))
  return wanted
    .filter(({ seq }) => !handled.has(seq) && !setAside.has(seq))
    .map(({ seq, type, kind }) => `the event ${seq} (${type} of ${kind}) was neither handled nor parked`)
}

/** Of each job, an event is first handled after the one before it. It may be handled again later. */
function outOfOrder({ wanted, handlings }: BusEvidence): string[] {
  const first = new Map<number, number>()
  for (const { what, seq, atMs } of handlings)
    if (what === 'started') first.set(seq, Math.min(atMs, first.get(seq) ?? atMs))
  const last = new Map<string, WantedRow>()
  return wanted.flatMap((event) => {
    const before = last.get(String(event.job_id))
    if (first.has(event.seq)) last.set(String(event.job_id), event)
    if (!before || (first.get(before.seq) ?? 0) <= (first.get(event.seq) ?? Number.POSITIVE_INFINITY)) return []
    return [`the event ${event.seq} of job ${event.job_id} was handled before ${before.seq}`]
  })
}

/** What the receiver took is delivered, what it refused is dead, and nothing else has ended. */
function wrongDeliveries({ deliveries, receipts }: BusEvidence): string[] {
  return deliveries.flatMap(({ id, event_id, type, state, path, body, error }) => {
    const mine = receipts.filter((receipt) => receipt.id === event_id && receipt.path === path)
    const was = (answer: Receipt['answer']) => mine.some((receipt) => receipt.answer === answer)
    const what = `delivery ${id} of ${type} to ${path}`
    if (mine.some((receipt) => receipt.body !== body)) return [`${what} was received with different bytes than planned`]
    if (state === 'delivered') return was('taken') ? [] : [`${what} is delivered, but the receiver never accepted it`]
    if (state === 'dead') return was('refused') ? [] : [`${what} is dead, but was never refused (${error})`]
    return [`${what} is ${state}`]
  })
}

function wrongReceipts({ receipts }: BusEvidence): string[] {
  const bodies = new Map<string, string>()
  return receipts.flatMap(({ id, path, body, isSigned }) => {
    const first = bodies.get(id) ?? body
    bodies.set(id, first)
    return [
      ...(isSigned ? [] : [`the event ${id} arrived at ${path} without a valid signature`]),
      ...(first === body ? [] : [`the event ${id} arrived with different bytes than before`]),
    ]
  })
}

/**
 * Two processes that handled events of one partition at the same time. A reader gives up its partition before its lease runs out, so only
 * one that could not run may be late.
 */
export function findDoubleReading({ handlings, killed }: Pick<BusEvidence, 'handlings' | 'killed'>): string[] {
  const pidOf = ({ token }: Handling) => Number(token.split('-')[0])
  const ends = new Map(handlings.filter(({ what }) => what === 'ended').map((one) => [one.token, one.atMs]))
  const started = handlings.filter(({ what }) => what === 'started').sort((a, b) => a.atMs - b.atMs)
  return started.flatMap((run, index) => {
    if (killed.has(pidOf(run))) return []
    const endMs = ends.get(run.token) ?? Number.POSITIVE_INFINITY
    const other = started
      .slice(index + 1)
      .find((next) => next.partition === run.partition && pidOf(next) !== pidOf(run) && next.atMs < endMs)
    if (!other) return []
    const late = Number.isFinite(endMs) ? `ended ${Math.round(endMs - other.atMs)} ms too late` : 'never ended'
    return [`the handler of event ${run.seq} in partition ${run.partition} ${late}: event ${other.seq} had started`]
  })
}
