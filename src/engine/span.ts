import type { AnyJob } from '../job/define.ts'
import { inSpan, isTraceparent } from '../trace/trace.ts'

interface Given {
  traceparent?: string
}

/** Says which trace to store with a job that is submitted like this. */
export type Trace = (how: Given) => Given

/**
 * Submits within a span, and says which trace to store with the jobs: the span's, so that their attempts belong to it. Without a tracer
 * there is nothing to say, and what the caller has given is stored.
 */
export function inSubmit<T>(
  job: AnyJob,
  traceparent: string | undefined,
  work: (trace: Trace) => Promise<T>,
): Promise<T> {
  const isParent = (how: Given) => how.traceparent === traceparent && isTraceparent(traceparent)
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
    // what was given for one of many is theirs, and what is no traceparent is refused by whoever checks it
    work((how) => (span && (how.traceparent === undefined || isParent(how)) ? { traceparent: span.traceparent } : {})),
  )
}
