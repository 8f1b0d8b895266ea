import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { defineJob } from 'holdfast'
import { afterAll, beforeEach, describe } from 'vitest'
import { swift } from './crash/member.ts'
import { expect, test, until } from './fixtures.ts'
import { hook, near } from './webhooks/hooks.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const traceId = '0af7651916cd43dd8448eb211c80319c'
const given = `00-${traceId}-b7ad6b7169203331-01`
const exporter = new InMemorySpanExporter()

function register(): void {
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
}

function unregister(): void {
  trace.disable()
  context.disable()
}

const idOf = (span: ReadableSpan | undefined) => span?.spanContext().spanId
const spans = () => exporter.getFinishedSpans()
const named = (name: string) => until(() => spans().find((span) => span.name === name), `the span ${name}`)
const nest = (name: string) => trace.getTracer('user').startSpan(name).end()

test('without a tracer a trace that was given is stored as it is, and none is made up', async ({ hf, query }) => {
  const plain = defineJob('plain', { run: () => 1 })
  const with_ = await hf.submit(plain, null, { traceparent: given })
  const without = await hf.submit(plain, null)
  const apart = await hf.submit(plain, null, { meta: { n: 1 } })
  const stored = (id: string) => query('select trace from holdfast.job_payload where job_id = $1', [id])
  expect(await stored(with_.id)).toEqual([{ trace: given }])
  expect(await stored(apart.id)).toEqual([{ trace: null }])
  expect(await stored(without.id)).toEqual([])
})

test('an SDK that throws costs no job', async ({ open }) => {
  const broken = () => {
    throw new Error('This SDK is broken.')
  }
  const plain = defineJob('plain', { run: () => 'done' })
  const hf = await open({ jobs: [plain] })
  try {
    trace.setGlobalTracerProvider({ getTracer: broken })
    const first = await hf.submit(plain, null)
    trace.disable()
    register()
    context.disable()
    const enabled = new AsyncLocalStorageContextManager().enable()
    context.setGlobalContextManager(Object.assign(enabled, { with: broken }))
    const second = await hf.submit(plain, null)
    await hf.work()
    for (const handle of [first, second]) expect((await handle.result()).state).toBe('succeeded')
  } finally {
    unregister()
  }
})

describe('with a tracer', () => {
  beforeEach(() => {
    exporter.reset()
    register()
    return unregister
  })
  afterAll(unregister)

  test('a job of two stages with a webhook is one trace, from its submit to its delivery', async ({ open }) => {
    const receiver = await hook()
    const staged = defineJob('staged', {
      queue: 'traced',
      stages: [
        { name: 'draft', run: () => nest('inside') },
        { name: 'final', run: () => 'done' },
      ],
    })
    const hf = await open({ ...near, jobs: [staged] })
    await hf.work()
    const root = trace.getTracer('user').startSpan('request')
    const { id } = await context.with(trace.setSpan(context.active(), root), () =>
      hf.submit(staged, null, { tenant: 'acme', webhook: { url: `${receiver.url}/secret-path`, secret } }),
    )
    root.end()
    const [received] = await receiver.got(1)
    const [submit, draft, inside, final, deliver] = await Promise.all(
      ['submit staged', 'run staged/draft', 'inside', 'run staged/final', 'deliver job.finished'].map(named),
    )
    expect(new Set(spans().map((span) => span.spanContext().traceId))).toEqual(new Set([root.spanContext().traceId]))
    expect(spans()).toHaveLength(6)
    expect(submit?.parentSpanContext?.spanId).toBe(root.spanContext().spanId)
    for (const span of [draft, final, deliver]) expect(span?.parentSpanContext?.spanId).toBe(idOf(submit))
    expect(inside?.parentSpanContext?.spanId).toBe(idOf(draft))
    expect([submit, draft, final, deliver].map((span) => span?.kind)).toEqual([
      SpanKind.PRODUCER,
      SpanKind.CONSUMER,
      SpanKind.CONSUMER,
      SpanKind.CLIENT,
    ])
    expect(final?.attributes).toEqual({
      'messaging.system': 'holdfast',
      'messaging.operation.type': 'process',
      'messaging.destination.name': 'traced',
      'messaging.message.id': id,
      'holdfast.kind': 'staged',
      'holdfast.stage': 'final',
      'holdfast.attempt': 2,
      'holdfast.tenant': 'acme',
      'holdfast.outcome': 'finish',
      'holdfast.settled': true,
    })
    expect(deliver?.attributes).toMatchObject({ 'http.response.status_code': 200, 'server.address': '127.0.0.1' })
    expect(JSON.stringify(deliver?.attributes)).not.toContain('secret-path')
    expect(received?.headers.traceparent).toBe(`00-${root.spanContext().traceId}-${idOf(deliver)}-01`)
  })

  test('an attempt that fails says so, and the next one has a span of its own in the same trace', async ({ open }) => {
    let isFirst = true
    const flaky = defineJob('flaky', {
      retries: 1,
      run: () => {
        if (!isFirst) return
        isFirst = false
        throw new Error('It broke.')
      },
    })
    const hf = await open({ jobs: [flaky] })
    await hf.work()
    const handle = await hf.submit(flaky, null, { traceparent: given })
    await handle.result()
    const runs = await until(() => {
      const found = spans().filter(({ name }) => name === 'run flaky/run')
      return found.length === 2 && found
    }, 'both attempts')
    expect(runs.map(({ status }) => status)).toEqual([
      { code: SpanStatusCode.ERROR, message: 'It broke.' },
      { code: SpanStatusCode.UNSET },
    ])
    expect(runs.map(({ attributes }) => attributes['holdfast.outcome'])).toEqual(['retry', 'finish'])
    expect(runs.map((span) => span.spanContext().traceId)).toEqual([traceId, traceId])
    expect((await named('submit flaky')).parentSpanContext?.spanId).toBe('b7ad6b7169203331')
  })

  test('an attempt after a crash goes on in the trace of its job', async ({ open, given: situations }) => {
    const lost = defineJob('lost', { queue: 'lost', run: () => 1 })
    const { id } = await situations.attemptOfDeadSession({ kind: 'lost', queue: 'lost', traceparent: given })
    const hf = await open({ ...swift, jobs: [lost] })
    await hf.work()
    await hf.handle(id).result()
    const run = await named('run lost/run')
    expect(run.attributes['holdfast.attempt']).toBe(2)
    expect(run.parentSpanContext).toMatchObject({ traceId, spanId: 'b7ad6b7169203331', isRemote: true })
  })

  test('the items of a fan-out are in the trace of their parent, as are jobs submitted together', async ({ open }) => {
    const fan = defineJob('fan', {
      stages: [{ name: 'split', fanOut: () => [1, 2], each: ({ input }) => nest(`item ${input}`) }],
    })
    const hf = await open({ jobs: [fan] })
    await hf.work()
    const handles = await hf.submitMany(fan, [{ input: null }, { input: null, traceparent: given }])
    await Promise.all(handles.map((handle) => handle.result()))
    const [submit, ...others] = spans().filter(({ name }) => name === 'submit fan')
    expect(others).toEqual([])
    const traces = await until(() => {
      const items = spans().filter(({ name }) => name.startsWith('item'))
      return items.length === 4 && items.map((span) => span.spanContext().traceId).toSorted()
    }, 'the spans of the items')
    const own = submit?.spanContext().traceId as string
    expect(traces).toEqual([own, own, traceId, traceId].toSorted())
  })

  test('a submit that is refused ends its span with the reason, and a malformed trace is refused', async ({ hf }) => {
    const plain = defineJob('plain', { run: () => 1 })
    await expect(hf.submit(plain, null, { traceparent: 'nonsense' })).rejects.toMatchObject({ code: 'option_invalid' })
    const { status } = await named('submit plain')
    expect(status).toMatchObject({ code: SpanStatusCode.ERROR, message: expect.stringContaining('traceparent') })
  })
})
