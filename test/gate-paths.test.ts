import { defineJob, type Holdfast, type Middleware } from 'holdfast'
import { claimGated } from '#holdfast/worker/gated-claim.sql'
import { expect, test, until } from './fixtures.ts'
import { strangerHolds } from './hold.ts'

const hourMs = 3_600_000
const large = 'x'.repeat(5_000)
const limit = { concurrency: 5 }
const noop = () => {}

/** The gate that a job waits at is closed until later. */
const isShut = `select from holdfast.gate where not is_open and next_at > now() + interval '1 min'`

async function carriedOut(hf: Holdfast, operation: Parameters<Holdfast['bulk']['start']>[0]): Promise<void> {
  const { id } = await hf.bulk.start(operation)
  await until(async () => (await hf.bulk.get(id)).state === 'finished', 'the bulk operation ends')
}

test('a job with a limit goes on when its signal is sent', async ({ open, query }) => {
  const approval = defineJob('approval', {
    limit,
    stages: [
      { name: 'approve', wait: { signal: 'approved', timeoutMs: hourMs } },
      { name: 'publish', run: ({ outputs }) => outputs.approve },
    ],
  })
  const hf = await open({ jobs: [approval] })
  await hf.work()
  const job = await hf.submit(approval, null)
  await until(async () => (await query(isShut)).length === 1, 'its gate is closed until the end of its wait')
  expect((await hf.why(job.id)).verdict.code).toBe('waits-for-signal')
  expect(await hf.signal(job.id, 'approved', 'yes')).toMatchObject({ isAwaited: true })
  expect(await job.result()).toMatchObject({ output: 'yes' })
  expect(await query('select from holdfast.lease')).toEqual([])
})

test('a snoozed job with a limit frees its slot, and runs again when it is due', async ({ open }) => {
  const order: string[] = []
  const nap = defineJob('nap', {
    limit: { concurrency: 1 },
    run: ({ input, attempt, snooze }) => {
      order.push(`${input} ${attempt}`)
      if (input === 'sleepy' && attempt === 1) snooze(1_000)
    },
  })
  const hf = await open({ jobs: [nap] })
  const sleepy = await hf.submit(nap, 'sleepy')
  const awake = await hf.submit(nap, 'awake')
  await hf.work()
  await Promise.all([sleepy.result(), awake.result()])
  expect(order).toEqual(['sleepy 1', 'awake 1', 'sleepy 2'])
})

test('a job with a limit runs when a bulk operation or its unique key brings it forward', async ({ open, query }) => {
  const later = defineJob('later', { limit, run: noop })
  const hf = await open({ jobs: [later] })
  await hf.work()
  const first = await hf.submit(later, null, { delayMs: hourMs })
  await until(async () => (await query(isShut)).length === 1, 'its gate is closed until it is due')
  await carriedOut(hf, { operation: 'reschedule', delayMs: 0, filter: { kind: 'later' } })
  await first.result()
  const unique = { key: 'one' }
  const second = await hf.submit(later, null, { delayMs: hourMs, unique })
  await until(async () => (await query(isShut)).length === 1, 'its gate is closed until it is due')
  const { outcome } = await hf.submit(later, null, { unique, onConflict: 'reschedule' })
  expect(outcome).toBe('rescheduled')
  await second.result()
})

test('a queued job with a limit that is reprioritized keeps its gate, and goes first there', async ({
  open,
  query,
}) => {
  const order: unknown[] = []
  const ranked = defineJob('ranked', { limit: { concurrency: 1 }, run: ({ input }) => void order.push(input) })
  const hf = await open({ jobs: [ranked] })
  await hf.limits.set({ kind: 'ranked' }, { concurrency: 0 })
  const jobs = await hf.submitMany(
    ranked,
    [1, 2].map((input) => ({ input, tenant: `tenant-${input}` })),
  )
  await hf.reap()
  await carriedOut(hf, { operation: 'priority', priority: 1, filter: { kind: 'ranked', tenant: 'tenant-2' } })
  expect(await query('select gate_key from holdfast.ready')).toEqual([{ gate_key: ' ' }, { gate_key: ' ' }])
  await hf.work()
  await hf.limits.remove({ kind: 'ranked' })
  await hf.limits.set({ kind: 'ranked' }, { concurrency: 1 })
  await Promise.all(jobs.map((job) => job.result()))
  expect(order).toEqual([2, 1])
})

test('the key of a limit is computed before a middleware replaces the input, also of schedules, items and continuations', async ({
  open,
  query,
}) => {
  const hidden: Middleware = {
    submit: (next, job) => next({ ...job, input: { hidden: JSON.stringify(job.input) } }),
    run: (next, attempt) =>
      next({ ...attempt, input: JSON.parse((attempt.input as { hidden: string }).hidden) as unknown }),
  }
  const sync = defineJob('sync', { limit: { key: 'customer', concurrency: 1 }, run: noop })
  const all = defineJob('all', {
    stages: [{ name: 'each', fanOut: () => [{ customer: 'item' }], each: sync }],
  })
  const hf = await open({ jobs: [sync, all], middleware: [hidden] })
  await hf.limits.set({ kind: 'sync' }, { concurrency: 0 })
  await hf.work()
  await hf.submit(sync, { customer: 'direct' })
  await hf.submit(all, null)
  await hf.schedules.set('often', { kind: sync, input: { customer: 'slot' }, every: '1h' })
  await hf.schedules.trigger('often')
  const barrier = { id: 'b', parts: 1, continuation: { job: sync, input: { customer: 'after' } } }
  await hf.barrier.open(barrier)
  await hf.barrier.arrive('b', '0')
  const keys = async () =>
    (await query<{ key: string }>(`select gate_key as key from holdfast.ready where kind = 'sync' order by 1`)).map(
      ({ key }) => key,
    )
  await until(async () => (await keys()).length === 4, 'all are queued')
  expect(await keys()).toEqual([' after', ' direct', ' item', ' slot'])
})

test('the job of a schedule waits at the gate of its kind', async ({ open, query }) => {
  const report = defineJob('report', {
    limit: { key: 'team', concurrency: 1 },
    schedule: { every: '1h', input: { team: 'red' } },
    run: noop,
  })
  const hf = await open({ jobs: [report] })
  await hf.work()
  await hf.limits.set({ kind: 'report', key: 'red' }, { concurrency: 0 })
  const { job } = await hf.schedules.trigger('report')
  expect(await query('select gate_key from holdfast.ready')).toEqual([{ gate_key: ' red' }])
  expect((await hf.why(job)).verdict).toMatchObject({ code: 'limit-full' })
  await hf.limits.remove({ kind: 'report', key: 'red' })
  await hf.handle(job).result()
})

test('a claim through gates takes no more than fits, and what it leaves uses up no slot, token or turn', async ({
  hf,
  store,
  given,
  query,
}) => {
  const page = defineJob('page', { queue: 'pages', run: noop })
  await hf.limits.set({ kind: 'page', key: '*' }, { concurrency: 5, rate: { limit: 5, perMs: hourMs } })
  await hf.submitMany(
    page,
    ['a', 'a', 'a', 'b'].map((limitKey) => ({ input: large, limitKey })),
  )
  const sessionId = await given.session()
  const claim = async (mostBytes: number) => {
    const rows = await store.run(claimGated, {
      sessionId,
      lanes: [{ queue: 'pages', kind: 'page', stageCount: 1 }],
      most: 10,
      mostBytes,
      deadlinesMs: '{"page":[60000]}',
      isSuspect: false,
      after: '',
    })
    return { count: rows.length - 1, isMore: rows.at(-1)?.lease_size === 1 }
  }
  const spent = async () =>
    (await query<{ spent: number }>(`select coalesce(sum(5 - round(tokens)), 0)::int as spent from holdfast.gate`))[0]
      ?.spent
  // the first is taken whatever its size
  expect(await claim(1)).toEqual({ count: 1, isMore: true })
  expect(await spent()).toBe(1)
  expect(await claim(12_000)).toEqual({ count: 2, isMore: true })
  expect(await spent()).toBe(3)
  expect(await claim(12_000)).toMatchObject({ count: 1 })
  expect(await spent()).toBe(4)
  expect(await query('select from holdfast.ready')).toEqual([])
})

/** Makes the server fail whenever the large input of one job is read, as it does for a damaged value. */
const damageInput = (id: string) => `
  alter table holdfast.job_payload rename to whole_payload;
  create function holdfast.damaged(job_id uuid, input json) returns json language plpgsql stable as $$
  begin
    if job_id = '${id}' then raise data_corrupted using message = 'missing chunk number 0 for toast value'; end if;
    return input;
  end $$;
  create view holdfast.job_payload as
    select job_id, bytes, holdfast.damaged(job_id, input) as input, meta, trace from holdfast.whole_payload`

test('a job at a gate that cannot be claimed is postponed, and stops no other', async ({ open, query }) => {
  const read = defineJob('read', { limit: { concurrency: 1 }, run: () => 'read' })
  const other = defineJob('other', { limit: { concurrency: 1 }, run: () => 'other' })
  const hf = await open({ jobs: [read, other] })
  const bad = await hf.submit(read, large)
  const [behind, beside] = [await hf.submit(read, large), await hf.submit(other, null)]
  await query(damageInput(bad.id))
  await hf.work()
  expect(await behind.result({ timeout: 20_000 })).toMatchObject({ output: 'read' })
  expect(await beside.result({ timeout: 20_000 })).toMatchObject({ output: 'other' })
  expect((await hf.why(bad.id)).verdict).toMatchObject({ code: 'unclaimable' })
  expect(await query('select attempt from holdfast.ready where job_id = $1', [bad.id])).toEqual([{ attempt: 0 }])
})

test('for remote workers too, a job at a gate that cannot be claimed stops no other', async ({ hf, query }) => {
  const far = defineJob('far', { queue: 'far', run: noop })
  await hf.limits.set({ kind: 'far' }, { concurrency: 1 })
  const bad = await hf.submit(far, large)
  const good = await hf.submit(far, large)
  await query(damageInput(bad.id))
  const { id } = await hf.remote.open({ kinds: [{ name: 'far', queue: 'far' }] })
  expect(await hf.remote.claim(id, { most: 5 })).toMatchObject([{ id: good.id }])
})

test('a limit whose row a stranger has locked is set once the row is free, and delays no claim of others', async ({
  open,
  pool,
}) => {
  const held = defineJob('held', { limit: { concurrency: 1 }, run: noop })
  const free = defineJob('free', { limit: { concurrency: 1 }, run: noop })
  const hf = await open({ jobs: [held, free] })
  await hf.work()
  const release = await strangerHolds(pool, `select from holdfast.limiter where name = 'held' for update`)
  const set = hf.limits.set({ kind: 'held' }, { concurrency: 7 })
  await (await hf.submit(free, null)).result()
  await release()
  await set
  expect(await hf.limits.get({ kind: 'held' })).toMatchObject({ concurrency: 7, source: 'set' })
})
