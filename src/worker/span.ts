import type { Outcome, Settled } from '../settle/outcome.ts'
import { beginSpan, type Traced } from '../trace/trace.ts'
import type { Attempt } from './attempt.ts'

/** Begins the span of an attempt, in the trace of its submit; null if this process has no tracer. */
export function beginAttempt({ row, job, stage }: Attempt): Traced | null {
  return beginSpan(() => ({
    name: `run ${row.kind}/${stage.name}`,
    kind: 'consumer',
    parent: row.trace,
    attributes: {
      'messaging.system': 'holdfast',
      'messaging.operation.type': 'process',
      'messaging.destination.name': job.queue,
      'messaging.message.id': row.id,
      'holdfast.kind': row.kind,
      'holdfast.stage': stage.name,
      'holdfast.attempt': row.attempt,
      'holdfast.tenant': row.tenant,
    },
  }))
}

/** Ends the span of an attempt with its outcome, and with whether that was written. */
export function endAttempt({ span, abortedBy }: Attempt, outcome: Outcome, settled: Settled | 'cancelled'): void {
  if (!span) return
  const attributes = { 'holdfast.outcome': outcome.move, 'holdfast.settled': settled === 'settled' }
  const failed = 'error' in outcome ? outcome.error?.message : undefined
  const lost = settled === 'settled' ? undefined : `Nothing was written: ${abortedBy ?? 'lease_lost'}.`
  const error = failed ?? lost
  span.end({ attributes, ...(error !== undefined && { error }) })
}
