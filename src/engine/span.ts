import type { AnyJob } from '../job/define.ts'
import { inSpan, isTraceparent } from '../trace/trace.ts'

interface Traced {
  traceparent?: string
}

/** The trace to store with a job that is submitted with these options. */
export type Trace = (how: Traced) => Traced

/**
 * Submits inside a span, and provides the trace to store with the jobs: that of the span, so that their attempts belong to it. Without a tracer,
 * the traceparent of the caller is stored.
 */
export function inSubmit<T>(
  job: AnyJob,
  traceparent: string | undefined,
  work: (trace: Trace) => Promise<T>,
): Promise<T> {
  const isParent = (how: Traced) => how.traceparent === traceparent && isTraceparent(traceparent)
  const about = () => ({
    name: `submit ${job?.kind}`,
    kind: 'producer' as const,
    parent: traceparent,
    attributes: {
      'messaging.system': 'holdfast',
      'messaging.operation.type': 'send',
      'messaging.destination.name': job?.queue,
      'holdfast.kind': job?.kind,
    },
  })
  return inSpan(about, (span) =>
    // a job with a traceparent of its own keeps it, and an invalid one is refused when the job is checked
    work((how) => (span && (how.traceparent === undefined || isParent(how)) ? { traceparent: span.traceparent } : {})),
  )
}
