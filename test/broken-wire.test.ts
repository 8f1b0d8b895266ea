import { defineJob } from 'holdfast'
import type { Fence } from '#holdfast/job/id'
import { openStore, type Store } from '#holdfast/postgres/store'
import type { Outcome } from '#holdfast/settle/outcome'
import { makeSettler, type Settler } from '#holdfast/settle/settle'
import { test as base, expect, until } from './fixtures.ts'
import { holdTable } from './hold.ts'
import { makeWire, type Wire } from './wire.ts'

interface Wired {
  wire: Wire
  /** A store whose connections go over the wire. */
  wired: Store
  settler: Settler
  refusals: Fence[]
}

const test = base.extend<Wired>({
  wire: async ({ url }, use) => use(await makeWire(url)),
  wired: async ({ wire }, use) => {
    const store = openStore({ url: wire.url, poolSize: 4, isPooled: false, statementTimeoutMs: 15_000 })
    await use(store)
    await store.close()
  },
  refusals: async ({ task: _task }, use) => use([]),
  settler: async ({ wired, refusals }, use) =>
    use(
      makeSettler({
        store: wired,
        batchSize: 500,
        givenUp: new AbortController().signal,
        onRefused: (fences) => refusals.push(...fences),
        onError: () => {},
      }),
    ),
})

const error = { code: 'handler_failed', message: 'It broke.' } as const
const outcomes: { statement: string; outcome: Outcome; event: string }[] = [
  { statement: 'job.finish', event: 'job.finished', outcome: { move: 'finish', stageName: 'one', output: '1' } },
  { statement: 'job.advance', event: 'job.advanced', outcome: { move: 'advance', stageName: 'one', output: '1' } },
  { statement: 'job.retry', event: 'job.retried', outcome: { move: 'retry', error, delayMs: 60_000 } },
  { statement: 'job.fail', event: 'job.failed', outcome: { move: 'fail', error, isOptional: false } },
  { statement: 'job.fail_optional', event: 'job.failed', outcome: { move: 'fail', error, isOptional: true } },
  { statement: 'job.release', event: 'job.released', outcome: { move: 'release' } },
]
const everyCut = outcomes.flatMap((one) => (['before', 'after'] as const).map((moment) => ({ ...one, moment })))

test.for(everyCut)(
  'a wire cut $moment $statement: tried again, settled once, and one event is written',
  async ({ moment, statement, outcome, event }, { given, wire, settler, refusals, hf, query }) => {
    const mine = await given.running()
    const cut = wire.cut(moment, statement)
    expect(await settler.settle({ fence: mine, outcome })).toBe('settled')
    await cut
    expect((await hf.timeline(mine.id)).map(({ type }) => type)).toEqual(['job.submitted', event])
    expect(refusals).toEqual([])
    expect(await query('select * from holdfast.refusal')).toEqual([])
  },
)

test('a commit whose answer was lost is settled even if the job has moved on since', async ({
  given,
  wire,
  settler,
  hf,
}) => {
  const mine = await given.running()
  const sessionId = await given.session()
  const cut = wire.cut('after', 'job.advance')
  const settled = settler.settle({ fence: mine, outcome: { move: 'advance', stageName: 'one', output: '1' } })
  await cut
  const [next] = await given.claim({ sessionId, queue: mine.queue })
  expect(next).toMatchObject({ stage: 1, attempt: 2 })
  expect(await settled).toBe('settled')
  expect(await hf.get(mine.id)).toMatchObject({ state: 'running', attempt: 2, outputs: { one: 1 } })
})

test('a settle whose answer was lost after its job was taken away is refused', async ({
  given,
  wire,
  settler,
  refusals,
  query,
}) => {
  const stale = await given.attemptThatWasLost()
  const cut = wire.cut('after', 'job.finish')
  expect(await settler.settle({ fence: stale, outcome: { move: 'finish', stageName: 'one', output: '1' } })).toBe(
    'lease_lost',
  )
  await cut
  expect(refusals).toHaveLength(1)
  expect(await query(`select from holdfast.event where type = 'job.finished'`)).toEqual([])
})

test('a settle whose server process is killed under it is tried again', async ({ given, settler, pool, query, hf }) => {
  const mine = await given.running()
  const release = await holdTable(pool, 'outcome')
  const settled = settler.settle({ fence: mine, outcome: { move: 'finish', stageName: 'one', output: '1' } })
  const waits = `from pg_stat_activity where query like '%job.finish%' and wait_event_type = 'Lock' and datname = current_database()`
  await until(async () => (await query(`select pg_terminate_backend(pid) ${waits}`)).length === 1, 'the settle waits')
  await release()
  expect(await settled).toBe('settled')
  expect(await hf.timeline(mine.id)).toHaveLength(2)
})

test('a lone outcome is settled in one statement of its own', async ({ given, wire, settler }) => {
  const mine = await given.running()
  await settler.settle({ fence: mine, outcome: { move: 'release' } })
  expect(wire.statements).toEqual(['job.release'])
})

test('outcomes that come at the same time share a statement', async ({ given, wire, settler }) => {
  const sessionId = await given.session()
  const mine = await Promise.all(Array.from({ length: 40 }, () => given.running({ sessionId })))
  await Promise.all(
    mine.map((fence) => settler.settle({ fence, outcome: { move: 'finish', stageName: 'one', output: null } })),
  )
  expect(wire.statements).toEqual(['job.finish'])
})

test('outcomes that come one after another while a statement is under way leave together', async ({
  given,
  wire,
  settler,
  pool,
  query,
}) => {
  const sessionId = await given.session()
  const mine = await Promise.all(Array.from({ length: 30 }, () => given.running({ sessionId })))
  const release = await holdTable(pool, 'outcome')
  const finish: Outcome = { move: 'finish', stageName: 'one', output: null }
  const settled: Promise<unknown>[] = []
  const waiting = `select from pg_stat_activity where query like '%job.finish%' and wait_event_type = 'Lock' and datname = current_database()`
  for (const fence of mine) {
    settled.push(settler.settle({ fence, outcome: finish }))
    // two statements may be under way; the rest gather behind them
    await until(async () => (await query(waiting)).length === Math.min(2, settled.length))
  }
  await release()
  expect(new Set(await Promise.all(settled))).toEqual(new Set(['settled']))
  expect(wire.statements).toEqual(['job.finish', 'job.finish', 'job.finish'])
})

test('submits that come at the same time share a statement', async ({ open, wire }) => {
  const greet = defineJob('greet', { run: () => {} })
  const hf = await open({ url: wire.url })
  await Promise.all(Array.from({ length: 100 }, () => hf.submit(greet, null)))
  expect(wire.statements.filter((name) => name === 'job.submit')).toHaveLength(1)
})

test('a submit over a wire that breaks says so, and a key makes it safe to repeat', async ({ open, wire, query }) => {
  const greet = defineJob('greet', { run: () => {} })
  const hf = await open({ url: wire.url })
  const cut = wire.cut('after', 'job.submit')
  await expect(hf.submit(greet, null, { key: 'k' })).rejects.toMatchObject({ code: 'database_unreachable' })
  await cut
  expect(await hf.submit(greet, null, { key: 'k' })).toMatchObject({ isNew: false })
  expect(await query('select count(*)::int as n from holdfast.job_status where finished_at is null')).toEqual([
    { n: 1 },
  ])
})

test('a transaction whose wire breaks before its commit leaves nothing', async ({ open, wire, query }) => {
  const greet = defineJob('greet', { run: () => {} })
  const hf = await open({ url: wire.url, batchSize: 10 })
  const cut = wire.cut('before', 'commit')
  const many = hf.submitMany(
    greet,
    Array.from({ length: 25 }, (_, input) => ({ input })),
  )
  await expect(many).rejects.toMatchObject({ code: 'database_unreachable' })
  await cut
  expect(await query('select count(*)::int as n from holdfast.job_status where finished_at is null')).toEqual([
    { n: 0 },
  ])
})

test('a worker whose claim was carried out but not heard works on those jobs all the same', async ({
  open,
  wire,
  hf,
}) => {
  const greet = defineJob('greet', { run: () => 'hello' })
  const worker = await open({ url: wire.url, jobs: [greet], heartbeatMs: 100 })
  await worker.work()
  const cut = wire.cut('after', 'job.claim')
  const handles = await hf.submitMany(
    greet,
    Array.from({ length: 20 }, (_, input) => ({ input })),
  )
  await cut
  for (const { id } of handles)
    expect(await hf.handle(id, greet).result({ timeout: 15_000 })).toMatchObject({ output: 'hello' })
})
