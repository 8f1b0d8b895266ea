import {
  type Attributes,
  type Context,
  context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'

/** What a span is about. */
export interface SpanFacts {
  name: string
  kind: 'producer' | 'consumer' | 'client'
  /** The parent span, as W3C traceparent; undefined: the active one, if any. */
  parent: string | null | undefined
  attributes: Attributes
}

/** A span that we started. Nothing here throws: a faulty tracer must not cost a job. */
export interface Traced {
  /** As W3C traceparent, to pass on. */
  readonly traceparent: string
  /** Runs `work` while the span is active, so that spans created in it become its children. */
  run<T>(work: () => T): T
  /** Ends it; later calls do nothing. `error` says what went wrong, if anything. */
  end(facts?: { attributes?: Attributes; error?: string }): void
}

const kinds = { producer: SpanKind.PRODUCER, consumer: SpanKind.CONSUMER, client: SpanKind.CLIENT }
const shape = /^(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})$/

/** Whether a value from outside has the form of a W3C traceparent. */
export function isTraceparent(word: unknown): word is string {
  return typeof word === 'string' && shape.test(word)
}

/** Starts a span; null if this process has no tracer, which costs next to nothing. */
export function beginSpan(tell: () => SpanFacts): Traced | null {
  try {
    const tracer = tracerOf()
    if (!tracer) return null
    const { name, kind, parent, attributes } = tell()
    const around = parent === undefined ? context.active() : contextOf(parent)
    return tracedOf(tracer.startSpan(name, { kind: kinds[kind], attributes }, around), around)
  } catch {
    return null
  }
}

/** Runs `work` within a span, which ends with it. */
export async function inSpan<T>(tell: () => SpanFacts, work: (span: Traced | null) => Promise<T>): Promise<T> {
  const span = beginSpan(tell)
  if (!span) return work(null)
  try {
    const result = await span.run(() => work(span))
    span.end()
    return result
  } catch (error) {
    span.end({ error: error instanceof Error ? error.message : String(error) })
    throw error
  }
}

/** The tracer of the user's SDK. Without an SDK, the API has only a proxy, which has no tracer to delegate to. */
function tracerOf(): Tracer | undefined {
  const provider = trace.getTracerProvider()
  if (!('getDelegateTracer' in provider)) return provider.getTracer('holdfast')
  return (provider as { getDelegateTracer(name: string): Tracer | undefined }).getDelegateTracer('holdfast')
}

function contextOf(traceparent: string | null): Context {
  const [, traceId, spanId, flags] = shape.exec(traceparent ?? '') ?? []
  if (!traceId || !spanId || !flags) return ROOT_CONTEXT
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true })
}

function tracedOf(span: Span, around: Context): Traced {
  const { traceId, spanId, traceFlags } = span.spanContext()
  let isOver = false
  return {
    traceparent: `00-${traceId}-${spanId}-${(traceFlags & 1).toString(16).padStart(2, '0')}`,
    run: (work) => runWithin(span, around, work),
    end({ attributes, error } = {}) {
      if (isOver) return
      isOver = true
      try {
        if (attributes) span.setAttributes(attributes)
        if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error })
        span.end()
      } catch {} // see Traced
    },
  }
}

/** Even with a faulty context manager, the work runs, and once. */
function runWithin<T>(span: Span, around: Context, work: () => T): T {
  let hasBegun = false
  const begin = () => {
    hasBegun = true
    return work()
  }
  try {
    return context.with(trace.setSpan(around, span), begin)
  } catch (error) {
    if (hasBegun) throw error
    return work()
  }
}
