import { defineJob, type Holdfast, HoldfastError, PermanentError } from 'holdfast'
import { onTestFinished, vi } from 'vitest'
import { readConfig } from '#holdfast/config/config'
import { pruning } from '#holdfast/reaper/duties/prune'
import { call } from './cli/command.ts'
import { expect, gate, test, until } from './fixtures.ts'
import { transaction } from './hold.ts'

const day = 86_400_000

type Query = <Row = Record<string, unknown>>(text: string, values?: unknown[]) => Promise<Row[]>

const mail = defineJob('mail', { run: () => 'sent' })
const bad = defineJob('bad', {
  run: ({ progress, log }) => {
    progress(1, 2)
    log('about to fail')
    throw new PermanentError('no')
  },
})

/** Makes all that has ended so old. */
async function age(query: Query, days: number, where = 'true'): Promise<void> {
  await query(`update holdfast.outcome set finished_at = now() - interval '${days} days' where ${where}`)
}

/** How many rows there are, of all tables that hold something of a job. */
async function rowsOf(query: Query): Promise<Record<string, number>> {
  const tables = [
    'job',
    'outcome',
    'job_payload',
    'stage_output',
    'job_progress',
    'job_webhook',
    'snapshot',
    'refusal',
    'barrier',
    'delivery',
    'prune_later',
    'prune_items',
  ]
  const left: Record<string, number> = {}
  for (const table of tables) {
    const [row] = await query<{ n: string }>(`select count(*) as n from holdfast.${table}`)
    if (Number(row?.n) > 0) left[table] = Number(row?.n)
  }
  const [told] = await query<{ n: string }>('select count(*) as n from holdfast.event where job_id is not null')
  return Number(told?.n) > 0 ? { ...left, event: Number(told?.n) } : left
}

async function idsOf(query: Query): Promise<string[]> {
  return (await query<{ id: string }>('select id from holdfast.job order by id')).map(({ id }) => id)
}

/** Removes what is due until nothing more goes. */
async function pruneAll(hf: Holdfast): Promise<number> {
  const { removed } = await hf.prune()
  return removed
}

test('a job leaves with everything that belongs to it, and an audit has nothing to complain of', async ({
  open,
  query,
}) => {
  const page = defineJob('page', { run: ({ input }) => input })
  const book = defineJob('book', {
    stages: [
      { name: 'pages', fanOut: () => [1, 2, 3], each: page },
      {
        name: 'lines',
        tolerate: 3,
        fanOut: () => [1, 2, 3],
        each: {
          retries: 0,
          run: () => {
            throw new Error('torn')
          },
        },
      },
    ],
  })
  const hf = await open({ jobs: [mail, bad, page, book], webhookAllow: ['127.0.0.1'], webhooks: false })
  const working = await hf.work()
  const handles = await hf.submitMany(
    mail,
    Array.from({ length: 20 }, (_, n) => ({ input: 'x'.repeat(n * 100), key: `k${n}`, meta: { n } })),
  )
  await Promise.all(handles.map((handle) => handle.result()))
  await (await hf.submit(book, null)).result()
  const webhook = { url: 'http://127.0.0.1:9/', secret: `whsec_${Buffer.alloc(32).toString('base64')}` }
  await expect((await hf.submit(bad, null, { webhook })).result()).rejects.toMatchObject({ code: 'job_failed' })
  await query(`insert into holdfast.refusal (job_id, attempt, session_id, write) values ($1, 1, 1, 'finish')`, [
    handles[0]?.id,
  ])
  expect(Object.keys(await rowsOf(query)).length).toBeGreaterThan(8)
  await working.stop()

  await age(query, 89)
  expect(await hf.prune({ dryRun: true })).toMatchObject({
    removed: 0,
    due: [{ kind: 'mail', state: 'succeeded', jobs: 20, items: 0 }],
  })
  expect(await pruneAll(hf)).toBe(20)
  expect((await hf.audit()).violations).toEqual([])

  await age(query, 91)
  expect((await hf.prune({ dryRun: true })).due).toEqual([
    { kind: 'bad', state: 'failed', jobs: 1, items: 0 },
    { kind: 'book', state: 'partial', jobs: 1, items: 6 },
  ])
  expect(await pruneAll(hf)).toBe(8)
  expect(await rowsOf(query)).toEqual({})
  expect((await hf.audit()).violations).toEqual([])

  await hf.work()
  await Promise.all((await hf.submitMany(mail, [{ input: 1 }, { input: 2, key: 'other' }])).map((job) => job.result()))
  expect((await hf.audit()).violations).toEqual([])
})

test('the leader removes what is due by itself, and says how much and how far behind it is', async ({
  open,
  query,
}) => {
  const hf = await open({ jobs: [mail] })
  const handle = await hf.submit(mail, null)
  await hf.work()
  await handle.result()
  await age(query, 31)
  await until(async () => (await idsOf(query)).length === 0, 'the job has left')
  await until(async () => /holdfast_jobs_removed_total 1\n/.test(await hf.metrics()), 'it is counted')
  await until(async () => /holdfast_prune_overdue_seconds 0\n/.test(await hf.metrics()), 'nothing is overdue')
})

test('a kind says how long its jobs are kept, by state; what it does not say follows the settings', async ({
  open,
  query,
}) => {
  const brief = defineJob('brief', { keep: { succeeded: '1d', failed: 400 * day }, run: () => 1 })
  const wrong = defineJob('wrong', {
    keep: '2d',
    run: () => {
      throw new PermanentError('no')
    },
  })
  const hf = await open({ jobs: [mail, bad, brief, wrong] })
  await hf.work()
  expect(await hf.kind('brief')).toMatchObject({ keep: { succeeded: day, failed: 400 * day } })
  expect(await hf.kind('mail')).toMatchObject({ keep: null })
  const handles = await hf.submitMixed([mail, bad, brief, wrong].map((job) => ({ job, input: null })))
  await Promise.allSettled(handles.map((handle) => handle.result()))
  const left = async () =>
    (await query<{ kind: string }>('select kind from holdfast.job order by kind')).map(({ kind }) => kind)
  await age(query, 1.5)
  await until(async () => (await left()).join() === 'bad,mail,wrong', 'what is kept for a day has left')
  await age(query, 3)
  await until(async () => (await left()).join() === 'bad,mail', 'what is kept for two days has left')
})

test('times that tenants ask for are rounded up a little, so that few walks serve all of them', async ({ query }) => {
  const hours = [0, 1, 7.5, 24, 168, 720, 721]
  const keep = (value: number) => JSON.stringify({ succeeded: value * 3_600_000 })
  for (const [n, value] of hours.entries())
    await query(
      `insert into holdfast.kind (tenant, name, queue, priority, crash_budget, stages, keep) values ('acme', $1, 'q', 2, 3, '[]', $2)`,
      [`k${n}`, keep(value)],
    )
  const rows = await query<{ hours: number }>(
    'select class::float8 / 3600000 as hours from holdfast.retention_periods(1800000, 1800000) as class order by class',
  )
  expect(rows.map((row) => row.hours)).toEqual([0.5, 1, 8, 24, 176, 768])
})

test('a time of keeping that makes no sense is refused with a sentence', () => {
  const run = () => 1
  expect(() => defineJob('x', { keep: 'long', run })).toThrow(/has keep "long"; use milliseconds or a string such as/)
  expect(() => defineJob('x', { keep: { queued: '1d' } as never, run })).toThrow(
    /has keep.queued, but queued is not a final state/,
  )
  expect(() => defineJob('x', { keep: { failed: -1 }, run })).toThrow(HoldfastError)
})

test('a job whose time became shorter leaves, though the walk had passed it', async ({ open, query, given }) => {
  const { id } = await given.finished('succeeded')
  const other = await given.finished('failed')
  await age(query, 20)
  expect(await pruneAll(await open({ keepMs: 10 * day, keepFailedMs: 15 * day, webhooks: false }))).toBe(2)
  expect(await idsOf(query)).not.toContain(id)
  expect(await idsOf(query)).not.toContain(other.id)

  const kept = await given.finished('failed')
  await age(query, 20)
  expect(await pruneAll(await open({ keepMs: 10 * day, keepFailedMs: 90 * day }))).toBe(0)
  expect(await idsOf(query)).toEqual([kept.id])
  expect(await pruneAll(await open({ keepMs: 10 * day, keepFailedMs: 10 * day }))).toBe(1)
})

test('a key outlives its job: a submit with it runs nothing, and its job says what became of it', async ({
  open,
  query,
}) => {
  const hf = await open({ jobs: [mail], keepMs: 3 * day, keepKeysMs: 7 * day, webhooks: false })
  await hf.work()
  const first = await hf.submit(mail, null, { key: 'once', tenant: 'acme' })
  await first.result()
  await age(query, 5)
  await until(async () => (await idsOf(query)).length === 0, 'the job has left')
  const again = await hf.submit(mail, null, { key: 'once', tenant: 'acme' })
  expect(again).toMatchObject({ id: first.id, isNew: false })
  const gone = {
    code: 'job_gone',
    message: expect.stringMatching(/ended as succeeded at \d{4}-.* was removed/),
    status: 410,
  }
  for (const ask of [
    () => again.result(),
    () => hf.get(first.id),
    () => hf.state(first.id, { tenant: 'acme' }),
    () => hf.why(first.id),
    () => hf.cancel(first.id),
    () => hf.redo(first.id),
  ])
    await expect(ask()).rejects.toMatchObject(gone)
  expect(await hf.get(first.id, { tenant: 'other' })).toBeNull()
  await expect(hf.submit(mail, 'else', { key: 'once', tenant: 'acme' })).rejects.toMatchObject({ code: 'key_conflict' })
  expect((await hf.audit()).violations).toEqual([])

  await query(`update holdfast.job_key set ended_at = now() - interval '8 days'`)
  await until(async () => (await query('select from holdfast.job_key')).length === 0, 'the key is forgotten')
  expect(await hf.get(first.id)).toBeNull()
  const fresh = await hf.submit(mail, null, { key: 'once', tenant: 'acme' })
  expect(fresh.isNew).toBe(true)
  await fresh.result()
})

test('a key is never forgotten before its job', async ({ open, query }) => {
  const hf = await open({ jobs: [mail], keepKeysMs: 0, webhooks: false })
  await hf.work()
  const first = await hf.submit(mail, null, { key: 'once' })
  await first.result()
  expect(await pruneAll(hf)).toBe(0)
  expect(await hf.submit(mail, null, { key: 'once' })).toMatchObject({ id: first.id, isNew: false })
  await age(query, 31)
  await until(async () => (await query('select from holdfast.job_key')).length === 0, 'both have left')
})

test('a job stays until every group has read its end, or until the cap, and then it goes loudly', async ({
  open,
  query,
  given,
}) => {
  const hf = await open({ webhooks: false })
  const read = gate()
  const group = await hf.events.subscribe('slow', { from: 'beginning' }, async () => read.promise)
  const ids = [(await given.finished('failed')).id, (await given.finished('succeeded')).id]
  await age(query, 89.5)
  await age(query, 95, `state = 'failed'`)
  const strict = await open({ eventCapMs: 100 * day, webhooks: false })
  expect(await strict.prune()).toMatchObject({ removed: 0, unreadBy: ['slow'] })
  expect((await idsOf(query)).toSorted()).toEqual(ids.toSorted())

  await query(`update holdfast.outcome set finished_at = now() - interval '99.5 days' where state = 'failed'`)
  const loud: string[] = []
  const log = Object.assign(Object.create(null), {
    ...Object.fromEntries(['debug', 'info', 'warn', 'fatal', 'trace'].map((level) => [level, () => {}])),
    error: (_facts: unknown, message: string) => void loud.push(message),
  })
  const capped = await open({ eventCapMs: 90 * day, eventRetentionMs: day, webhooks: false, log })
  await capped.reap()
  await until(async () => (await idsOf(query)).length === 1, 'what reached the cap has left')
  expect(await idsOf(query)).toEqual([ids[1]])
  await until(() => loud.some((message) => /removed finished jobs at the cap/.test(message)), 'it is said loudly')

  read.open()
  await until(async () => (await idsOf(query)).length === 0, 'what was read has left')
  await group.stop()
})

test('a job whose delivery is pending stays, and goes once that has ended', async ({ open, query, given }) => {
  const hf = await open({ webhooks: false })
  const { id } = await given.finished('failed')
  await query(
    `insert into holdfast.delivery (event_seq, event_id, type, tenant, job_id, lane, state, body) values (1, 'x', 'job.failed', 'default', $1, 'l', 'pending', '{}')`,
    [id],
  )
  await query(`update holdfast.outcome set finished_at = now() - interval '80 days'`)
  const short = await open({ keepFailedMs: 10 * day, webhooks: false })
  expect(await pruneAll(short)).toBe(0)
  expect(await rowsOf(query)).toMatchObject({ job: 1, outcome: 1, prune_later: 1 })
  await query(`update holdfast.delivery set state = 'delivered', ended_at = now()`)
  await query(`update holdfast.prune_later set next_at = now()`)
  expect(await pruneAll(short)).toBe(1)
  expect(await rowsOf(query)).toEqual({})
  await hf.close()
})

test('rows that a stranger holds are not waited for, and keep nobody else', async ({ open, query, given, url }) => {
  const ids = [await given.finished(), await given.finished(), await given.finished(), await given.finished()].map(
    ({ id }) => id,
  )
  await query(`insert into holdfast.job_progress (job_id, attempt, stage, done) select id, 1, 0, 1 from holdfast.job`)
  await age(query, 31)
  // what is complete is known from before the stranger came
  expect(await pruneAll(await open({ keepMs: 60 * day, webhooks: false }))).toBe(0)
  const hf = await open({ webhooks: false })
  const client = await transaction(url)
  await client.query('select from holdfast.outcome where job_id = $1 for update', [ids[0]])
  await client.query('select from holdfast.job where id = $1 for key share', [ids[1]])
  await client.query('select from holdfast.job_progress where job_id = $1 for update', [ids[2]])
  const startedMs = performance.now()
  expect(await pruneAll(hf)).toBe(1)
  expect(performance.now() - startedMs).toBeLessThan(5_000)
  expect((await idsOf(query)).toSorted()).toEqual(ids.slice(0, 3).toSorted())
  await client.query('commit')
  await query(`update holdfast.prune_later set next_at = now()`)
  expect(await pruneAll(hf)).toBe(3)
  expect(await rowsOf(query)).toEqual({})
})

test('an outcome that is committed late is not passed over', async ({ open, query, given, url }) => {
  const hf = await open({ keepMs: 0, webhooks: false })
  const late = await given.running()
  const client = await transaction(url)
  await client.query(`delete from holdfast.lease where id = $1`, [late.leaseId])
  await client.query(
    `insert into holdfast.outcome (job_id, finished_at, attempt, stage, failures, crashes, is_flawed, state, kind, tenant)
    values ($1, now(), 1, 0, 0, 0, false, 'succeeded', 'sample', 'default')`,
    [late.id],
  )
  await given.finished()
  expect(await pruneAll(hf)).toBe(0)
  await client.query('commit')
  expect(await pruneAll(hf)).toBe(2)
  expect(await idsOf(query)).toEqual([])
})

test('a job of a kind that is not kept is gone once it has ended, and whoever waits for it is told', async ({
  open,
  query,
}) => {
  const flash = defineJob('flash', { keep: 0, run: () => 'done' })
  const hf = await open({ jobs: [flash] })
  const elsewhere = await open({ jobs: [flash] })
  const handles = await Promise.all(
    Array.from({ length: 3 }, (_, n) => elsewhere.submit(flash, null, n === 0 ? { key: 'k' } : {})),
  )
  await hf.work()
  for (const result of await Promise.allSettled(handles.map((handle) => handle.result())))
    if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'job_gone' })
  await until(async () => (await idsOf(query)).length === 0, 'all have left')
  await expect(handles[0]?.result()).rejects.toMatchObject({ code: 'job_gone' })
  expect((await hf.audit()).violations).toEqual([])
})

test('a fan-out of thousands of items leaves in batches, however deep it is', async ({ open, query }) => {
  const leaf = defineJob('leaf', { run: () => 1 })
  const branch = defineJob('branch', {
    stages: [{ name: 'leaves', fanOut: () => [1, 2], each: leaf, join: () => 1 }],
  })
  const tree = defineJob('tree', {
    stages: [{ name: 'branches', fanOut: () => Array.from({ length: 600 }, (_, n) => n), each: branch, join: () => 1 }],
  })
  const hf = await open({ jobs: [leaf, branch, tree], webhooks: false })
  const working = await hf.work({ concurrency: 100 })
  await (await hf.submit(tree, null)).result()
  await working.stop()
  // items are older than their parent, and stay all the same
  await age(query, 40, 'barrier_id is not null')
  expect(await pruneAll(hf)).toBe(0)
  await age(query, 40)
  expect(await pruneAll(hf)).toBe(1 + 600 + 1200)
  expect(await rowsOf(query)).toEqual({})
})

test('a parent stays while an item of it is redone, and both leave after it', async ({ open, query }) => {
  const hold = gate()
  let isFirst = true
  const part = defineJob('part', {
    run: async () => {
      if (isFirst) {
        isFirst = false
        throw new PermanentError('no')
      }
      await hold.promise
    },
  })
  const whole = defineJob('whole', { stages: [{ name: 'parts', tolerate: 1, fanOut: () => [1], each: part }] })
  const hf = await open({ jobs: [part, whole], webhooks: false })
  await hf.work()
  const parent = await hf.submit(whole, null)
  await parent.result().catch(() => {})
  const [item] = await hf.items(parent.id)
  await hf.redo(item?.id as string)
  await age(query, 100)
  await until(async () => (await query('select from holdfast.prune_later')).length === 1, 'the parent has to wait')
  expect(await hf.get(parent.id)).not.toBeNull()
  hold.open()
  await until(async () => (await hf.get(item?.id as string))?.finishedAt !== null, 'the item has ended')
  await query(`update holdfast.prune_later set next_at = now()`)
  await until(async () => (await idsOf(query)).length === 0, 'both have left')
})

test('a clock that was ahead when a job ended holds up nothing that ended after it', async ({ open, query, given }) => {
  const ahead = await given.finished()
  const after = await given.finished()
  await query(`update holdfast.outcome set finished_at = now() + interval '10 years' where job_id = $1`, [ahead.id])
  await age(query, 31, `job_id = '${after.id}'`)
  const hf = await open({ webhooks: false })
  expect(await pruneAll(hf)).toBe(1)
  expect(await idsOf(query)).toEqual([ahead.id])
  const [later] = await query<{ days: number }>(
    `select round(extract(epoch from next_at - now()) / 86400)::int as days from holdfast.prune_later`,
  )
  expect(later).toEqual({ days: 30 })
})

test('two that prune at once remove each job once', async ({ open, query, given }) => {
  for (let n = 0; n < 20; n++) await given.finished()
  await age(query, 31)
  const all = await Promise.all(Array.from({ length: 4 }, () => open({ webhooks: false })))
  const removed = await Promise.all(all.map(pruneAll))
  expect(removed.reduce((sum, count) => sum + count, 0)).toBe(20)
  expect(await rowsOf(query)).toEqual({})
})

test('a redo and a removal that meet leave the job whole, or gone', async ({ open, query, given }) => {
  const hf = await open({ webhooks: false })
  for (let turn = 0; turn < 10; turn++) {
    const { id } = await given.finished('failed')
    await age(query, 100)
    const [redone] = await Promise.allSettled([hf.redo(id), hf.prune()])
    const left = await query('select state from holdfast.job_status where id = $1', [id])
    expect(left).toEqual(redone.status === 'fulfilled' ? [{ state: 'queued' }] : [])
  }
  expect((await hf.audit()).violations).toEqual([])
})

test('the items of a fan-out that a redo from the start has thrown away leave too, and those of the new one stay', async ({
  open,
  query,
}) => {
  let isFirst = true
  const part = defineJob('part', {
    run: () => {
      if (isFirst) throw new PermanentError('no')
    },
  })
  const whole = defineJob('whole', { stages: [{ name: 'parts', fanOut: () => [1, 2], each: part }] })
  const hf = await open({ jobs: [part, whole], webhooks: false })
  const working = await hf.work()
  const parent = await hf.submit(whole, null)
  await expect(parent.result()).rejects.toMatchObject({ code: 'job_failed' })
  const thrown = (await hf.items(parent.id)).map(({ id }) => id)
  isFirst = false
  await hf.redo(parent.id, { from: 'start' })
  await parent.result()
  await working.stop()
  expect(await query('select from holdfast.prune_items')).toHaveLength(1)
  await query('update holdfast.prune_items set next_at = now()')
  expect(await pruneAll(hf)).toBe(2)
  const left = await idsOf(query)
  expect(left).toHaveLength(3)
  expect(left.filter((id) => thrown.includes(id as never))).toEqual([])
  expect((await hf.audit()).violations).toEqual([])
})

test('holdfast prune removes what is due, and with --dry-run only says what is', async ({ url, query, given }) => {
  for (const state of ['succeeded', 'succeeded', 'failed'] as const) await given.finished(state)
  await age(query, 40)
  const env = { HOLDFAST_URL: url }
  const dry = await call(['prune', '--dry-run', '--keep-failed-ms', '35d'], { env })
  expect(dry).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('3 jobs would be removed. Nothing was changed.'),
  })
  expect(dry.stdout).toMatch(/sample +failed +1 job\n/)
  expect(await idsOf(query)).toHaveLength(3)
  expect(await call(['prune'], { env })).toMatchObject({ code: 0, stdout: 'Removed 2 jobs.\n' })
  expect(await idsOf(query)).toHaveLength(1)
})

test('while the clocks of the leader and of the database are hours apart, nothing is removed, and that is said', async ({
  query,
  given,
  store,
}) => {
  const { id } = await given.finished()
  await age(query, 31)
  const duty = pruning(readConfig({}, {}))
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 2 * 3_600_000 })
  onTestFinished(() => void vi.useRealTimers())
  const { pruned, notes } = await duty.run(store)
  expect(pruned).toMatchObject({ removed: 0 })
  expect(notes).toMatchObject([{ isError: true, message: expect.stringContaining('differ by more than an hour') }])
  expect(await idsOf(query)).toEqual([id])
  vi.useRealTimers()
  expect((await duty.run(store)).pruned).toMatchObject({ removed: 1 })
})
