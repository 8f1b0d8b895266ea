import { defineJob, type Holdfast, type SubmitHow } from 'holdfast'
import { memberKinds as kinds, startMember, swift } from './crash/member.ts'
import { expect, gate, test, until } from './fixtures.ts'

const index = defineJob('index', { run: ({ input }) => input as unknown })
const unique = (key = 'doc-1', how: Partial<SubmitHow['unique']> = {}) => ({ unique: { key, ...how } })
const submit = (hf: Holdfast, input: unknown, how: SubmitHow = unique()) => hf.submit(index, input as never, how)

test('while a job is live, a submit with its unique key keeps it', async ({ open }) => {
  const hf = await open({ jobs: [index] })
  const first = await submit(hf, 1)
  expect(first).toMatchObject({ isNew: true, outcome: 'submitted' })
  expect(await submit(hf, 2)).toMatchObject({ id: first.id, isNew: false, outcome: 'kept' })
  // another key, another tenant or another kind has nothing to do with it
  const others = await Promise.all([
    submit(hf, 3, unique('doc-2')),
    submit(hf, 4, { ...unique(), tenant: 'other' }),
    hf.submit(defineJob('else', { run: () => {} }), null, unique()),
    submit(hf, 5, {}),
  ])
  expect(others.map(({ outcome }) => outcome)).toEqual(['submitted', 'submitted', 'submitted', 'submitted'])
  expect(await hf.why(first.id)).toMatchObject({ facts: { unique: { key: 'doc-1', until: null } } })
  await hf.work()
  await first.result()
  const next = await submit(hf, 6)
  expect(next).toMatchObject({ isNew: true, outcome: 'submitted' })
  expect(await next.result()).toMatchObject({ output: 6 })
  expect((await hf.audit()).violations).toEqual([])
})

test('of 50 concurrent submits with one key, over several connections, one job is left', async ({ open, query }) => {
  const all = await Promise.all([open(), open(), open(), open(), open()])
  const handles = await Promise.all(
    Array.from({ length: 50 }, (_, number) => submit(all[number % 5] as Holdfast, number)),
  )
  expect(new Set(handles.map(({ id }) => id)).size).toBe(1)
  expect(handles.filter(({ outcome }) => outcome === 'submitted')).toHaveLength(1)
  expect(await query('select from holdfast.job')).toHaveLength(1)
  const replaced = await Promise.all(
    Array.from({ length: 50 }, (_, number) =>
      submit(all[number % 5] as Holdfast, number, { ...unique(), onConflict: 'replace' }),
    ),
  )
  expect(new Set(replaced.map(({ outcome }) => outcome))).toEqual(new Set(['replaced']))
  const [only, ...none] = await query<{ job_id: string }>('select job_id from holdfast.ready')
  expect(none).toEqual([])
  const [row] = await query('select job_id from holdfast.unique_job')
  expect(row).toEqual(only)
  expect((await (all[0] as Holdfast).audit()).violations).toEqual([])
})

test('a queued job is replaced by cancelling it, with the reason', async ({ open }) => {
  const hf = await open({ jobs: [index] })
  const first = await submit(hf, 'old', { ...unique(), delayMs: 60_000 })
  const second = await submit(hf, 'new', { ...unique(), onConflict: 'replace' })
  expect(second).toMatchObject({ isNew: true, outcome: 'replaced' })
  expect(second.id).not.toBe(first.id)
  expect(await hf.get(first.id)).toMatchObject({
    state: 'cancelled',
    error: { code: 'job_cancelled', message: expect.stringContaining(`replaced by job ${second.id}`) },
  })
  expect(await hf.why(first.id)).toMatchObject({ verdict: { sentence: expect.stringContaining(second.id) } })
  expect((await hf.timeline(first.id)).map(({ type }) => type)).toEqual(['job.submitted', 'job.cancelled'])
  await hf.work()
  expect(await second.result()).toMatchObject({ output: 'new' })
  expect((await hf.audit()).violations).toEqual([])
})

test('replacing a job that runs leaves it alone, and leaves exactly one successor with the latest input', async ({
  open,
  query,
}) => {
  const hold = gate()
  const ran: unknown[] = []
  const slow = defineJob('slow', {
    run: async ({ input }) => {
      ran.push(input)
      if (input === 'running') await hold.promise
    },
  })
  const hf = await open({ jobs: [slow], concurrency: 1 })
  await hf.work()
  const running = await hf.submit(slow, 'running' as never, unique())
  await until(() => ran.length === 1, 'it runs')
  expect(await hf.submit(slow, 'kept' as never, unique())).toMatchObject({ id: running.id, outcome: 'kept' })
  expect(await hf.submit(slow, 'kept' as never, { ...unique(), onConflict: 'reschedule' })).toMatchObject({
    id: running.id,
    outcome: 'kept',
  })
  const replace = (input: string) => hf.submit(slow, input as never, { ...unique(), onConflict: 'replace' })
  const successors = []
  for (const input of ['a', 'b', 'c', 'latest']) successors.push(await replace(input))
  expect(successors.map(({ outcome }) => outcome)).toEqual(['replaced', 'replaced', 'replaced', 'replaced'])
  const queued = await until(async () => {
    const rows = await query<{ id: string }>(
      `select id from holdfast.job_status where state in ('queued', 'running') and id <> $1`,
      [running.id],
    )
    return rows.length === 1 && rows
  }, 'one successor is live')
  expect(queued).toEqual([{ id: successors.at(-1)?.id }])
  // the holder is live, and so is its successor: the key is taken by both
  expect(await hf.submit(slow, 'kept' as never, unique())).toMatchObject({ id: successors.at(-1)?.id, outcome: 'kept' })
  hold.open()
  await Promise.all([running.result(), successors.at(-1)?.result()])
  expect(ran).toEqual(['running', 'latest'])
  expect(await hf.submit(slow, 'next' as never, unique())).toMatchObject({ outcome: 'submitted' })
  expect((await hf.audit()).violations).toEqual([])
})

test('replacing races the claim, and each job either runs or was cancelled before it started', {
  timeout: 60_000,
}, async ({ open, query }) => {
  const ran = new Map<string, unknown>()
  const quick = defineJob('quick', { run: ({ job, input }) => void ran.set(job.id, input) })
  const [hf, other] = [await open({ jobs: [quick] }), await open({ jobs: [quick] })]
  await Promise.all([hf.work(), other.work()])
  const all: { id: string; input: number }[] = []
  for (let input = 0; input < 300; input++) {
    const from = input % 2 === 0 ? hf : other
    const { id, outcome } = await from.submit(quick, input as never, { ...unique(), onConflict: 'replace' })
    expect(['submitted', 'replaced']).toContain(outcome)
    all.push({ id, input })
  }
  const open_ = `select from holdfast.job_status where state not in ('succeeded', 'cancelled')`
  await until(async () => (await query(open_)).length === 0, 'all have ended')
  const states = await query<{ id: string; state: string }>('select id, state from holdfast.job_status')
  for (const { id, state } of states) expect(ran.has(id)).toBe(state === 'succeeded')
  expect(ran.get(all.at(-1)?.id as string)).toBe(299)
  expect((await hf.audit()).violations).toEqual([])
})

test('with while: queued, the key is free once a worker has claimed the job', async ({ open }) => {
  const hold = gate()
  const started = gate()
  const slow = defineJob('slow', {
    run: () => {
      started.open()
      return hold.promise
    },
  })
  const hf = await open({ jobs: [slow] })
  const queued = unique('k', { while: 'queued' })
  const first = await hf.submit(slow, null, queued)
  expect(await hf.submit(slow, null, queued)).toMatchObject({ id: first.id, outcome: 'kept' })
  await hf.work()
  await started.promise
  const second = await hf.submit(slow, null, queued)
  expect(second).toMatchObject({ outcome: 'submitted' })
  // asked for all live jobs, the earlier one counts as well
  await until(async () => (await hf.get(second.id))?.state === 'running', 'the second runs')
  await hf.cancel(second.id)
  expect(await hf.submit(slow, null, unique('k'))).toMatchObject({ id: first.id, outcome: 'kept' })
  hold.open()
})

test('reschedule moves the queued job to the time of the last submit, and keeps its input', async ({ open, query }) => {
  const hf = await open({ jobs: [index] })
  const how = { ...unique(), onConflict: 'reschedule' as const }
  const first = await submit(hf, 'first', { ...how, delayMs: 60_000 })
  const again = await submit(hf, 'second', { ...how, delayMs: 3_600_000 })
  expect(again).toMatchObject({ id: first.id, isNew: false, outcome: 'rescheduled' })
  const [row] = await query<{ ms: number }>(
    'select extract(epoch from run_at - now())::float8 * 1000 as ms from holdfast.ready',
  )
  expect(row?.ms).toBeGreaterThan(3_500_000)
  const timeline = await hf.timeline(first.id)
  expect(timeline.at(-1)).toMatchObject({ type: 'job.rescheduled', data: { runAt: expect.any(String) } })
  await submit(hf, 'third', how)
  await hf.work()
  expect(await first.result()).toMatchObject({ output: 'first' })
})

test('windowMs holds the key although the job has ended, and then frees it', async ({ open, query }) => {
  const hf = await open({ jobs: [index] })
  await hf.work()
  const how = unique('k', { windowMs: 1_500 })
  const first = await submit(hf, 1, how)
  await first.result()
  for (const onConflict of ['keep', 'replace', 'reschedule'] as const)
    expect(await submit(hf, 2, { ...how, onConflict })).toMatchObject({ id: first.id, outcome: 'kept' })
  await until(
    async () => (await query('select from holdfast.unique_job where until > now()')).length === 0,
    'it is over',
  )
  expect(await submit(hf, 3, how)).toMatchObject({ outcome: 'submitted' })
})

test('a key whose window is over is forgotten, and so is a key with its job', async ({ open, query }) => {
  const hf = await open({ jobs: [index], keepMs: 0 })
  await hf.work()
  await (await submit(hf, 1, unique('a', { windowMs: 100 }))).result()
  await (await submit(hf, 1, unique('b'))).result().catch(() => null)
  await until(async () => (await query('select from holdfast.unique_job')).length === 0, 'nothing is left', 30_000)
  expect(await query('select from holdfast.job')).toEqual([])
})

test('a key whose last job was removed still belongs to an earlier one that runs', async ({ open, query }) => {
  const hold = gate()
  const slow = defineJob('slow', { run: ({ input }) => (input === 'long' ? hold.promise : undefined) })
  const hf = await open({ jobs: [slow], keepMs: 0, concurrency: 5 })
  await hf.work()
  const long = await hf.submit(slow, 'long' as never, unique())
  await until(async () => (await hf.get(long.id))?.state === 'running', 'it runs')
  const { id } = await hf.submit(slow, 'short' as never, { ...unique(), onConflict: 'replace' })
  await until(
    async () => (await query('select from holdfast.job where id = $1', [id])).length === 0,
    'it is gone',
    30_000,
  )
  expect(await hf.submit(slow, 'kept' as never, unique())).toMatchObject({ id: long.id, outcome: 'kept' })
  hold.open()
  await until(async () => (await query('select from holdfast.unique_job')).length === 0, 'the key is gone', 30_000)
})

test('many unique jobs at once: all or none, the same key twice, and in a transaction of the caller', async ({
  open,
  pool,
  query,
}) => {
  const hf = await open({ jobs: [index] })
  const one = (key: string, input: number, onConflict: 'keep' | 'replace' = 'keep') => ({
    input: input as never,
    unique: { key },
    onConflict,
  })
  const handles = await hf.submitMany(index, [one('b', 1), one('a', 2), one('b', 3), { input: 4 as never, key: 'k' }])
  expect(handles.map(({ outcome }) => outcome)).toEqual(['submitted', 'submitted', 'kept', 'submitted'])
  expect(handles[2]?.id).toBe(handles[0]?.id)
  const replaced = await hf.submitMany(index, [one('b', 5, 'replace'), one('b', 6, 'replace')])
  expect(replaced.map(({ outcome }) => outcome)).toEqual(['replaced', 'replaced'])
  expect(await hf.get(replaced[0]?.id as string)).toMatchObject({ state: 'cancelled' })
  await expect(hf.submitMany(index, [one('c', 1), one('', 2)])).rejects.toMatchObject({ code: 'option_invalid' })
  expect(await query(`select from holdfast.unique_job where key = 'c'`)).toEqual([])
  const client = await pool.connect()
  await client.query('begin')
  await hf.submit(index, 1 as never, { unique: { key: 'd' }, tx: client })
  await client.query('rollback')
  expect(await query(`select from holdfast.unique_job where key = 'd'`)).toEqual([])
  expect(await hf.submit(index, 2 as never, { unique: { key: 'd' } })).toMatchObject({ outcome: 'submitted' })
  client.release()
})

test('submits with other keys do not wait for many with the same key', async ({ open, query }) => {
  const hf = await open({ jobs: [index] })
  const answered: string[] = []
  const same = Array.from({ length: 300 }, (_, input) =>
    submit(hf, input, { ...unique('busy'), onConflict: 'replace' }).then(({ outcome }) => void answered.push(outcome)),
  )
  await submit(hf, 1, unique('other')).then(() => void answered.push('other'))
  await Promise.all(same)
  expect(answered.indexOf('other')).toBeLessThan(10)
  const [last] = await query<{ input: unknown }>(
    `select job.input from holdfast.unique_job join holdfast.job on job.id = unique_job.job_id where key = 'busy'`,
  )
  expect(last).toEqual({ input: 299 })
})

test('a submit whose key is locked by a stranger waits alone', async ({ open, pool }) => {
  const hf = await open({ jobs: [index] })
  await submit(hf, 1)
  const client = await pool.connect()
  await client.query('begin')
  await client.query('select from holdfast.unique_job for update')
  const waiting = submit(hf, 2)
  const others = await Promise.all(Array.from({ length: 20 }, (_, n) => submit(hf, n, unique(`other-${n}`))))
  expect(others.map(({ outcome }) => outcome)).toEqual(others.map(() => 'submitted'))
  await client.query('rollback')
  client.release()
  expect(await waiting).toMatchObject({ outcome: 'kept' })
})

test('bad unique options are refused with a reason, and nothing is submitted', async ({ open, query }) => {
  const hf = await open({ jobs: [index] })
  const refused = async (how: object, why: RegExp) =>
    expect(submit(hf, 1, how as never)).rejects.toMatchObject({
      code: 'option_invalid',
      message: expect.stringMatching(why),
    })
  await refused({ unique: { key: '' } }, /unique\.key must be a string of 1 to 300/)
  await refused({ unique: { key: 'x'.repeat(301) } }, /unique\.key must be/)
  await refused({ unique: { key: 7 } }, /unique\.key must be/)
  await refused({ unique: 'k' }, /unique must be \{ key, while, windowMs \}/)
  await refused({ unique: { key: 'k', while: 'running' } }, /unique\.while must be queued or live/)
  await refused({ unique: { key: 'k', windowMs: -1 } }, /unique\.windowMs must be milliseconds from 1/)
  await refused({ unique: { key: 'k', window: 1 } }, /no option "window"; did you mean windowMs/)
  await refused({ unique: { key: 'k' }, onConflict: 'override' }, /onConflict must be one of keep, replace, reschedule/)
  await refused({ onConflict: 'keep' }, /for unique jobs only/)
  await refused({ unique: { key: 'k' }, key: 'k' }, /either key or unique/)
  expect(await query('select from holdfast.job')).toEqual([])
  expect(await query('select from holdfast.unique_job')).toEqual([])
})

test('a submitter that is killed at any moment leaves no key that blocks for ever', { timeout: 120_000 }, async ({
  url,
  open,
  query,
}) => {
  const hf = await open({ jobs: [kinds.steady] })
  for (let round = 0; round < 6; round++) {
    const client = await startMember({ url, role: 'client', settings: swift })
    client.order({ replace: { kind: 'steady', key: 'k' } })
    // after another number of submits in each round
    await until(() => client.lines.filter(({ submitted }) => submitted).length > 7 * round, 'it submits')
    await client.kill('SIGKILL')
  }
  // one holder at most is queued, and replacing it works as if nothing had happened
  const [latest] = await query<{ job_id: string }>('select job_id from holdfast.unique_job')
  const ready = await query<{ job_id: string }>('select job_id from holdfast.ready')
  expect(ready).toEqual([latest])
  const next = await hf.submit(kinds.steady, { takesMs: 0 } as never, { ...unique('k'), onConflict: 'replace' })
  expect(next.outcome).toBe('replaced')
  await startMember({ url, settings: swift })
  await next.result()
  expect(await hf.submit(kinds.steady, { takesMs: 0 } as never, unique('k'))).toMatchObject({ outcome: 'submitted' })
  expect((await hf.audit()).violations).toEqual([])
})

test('a worker killed while it holds the key does not free it, and its job keeps it until it has ended', async ({
  url,
  hf,
}) => {
  const first = await startMember({ url, settings: swift })
  const holder = await hf.submit(kinds.hold, null, unique())
  await first.runs(holder.id)
  await first.kill('SIGKILL')
  expect(await hf.submit(kinds.hold, null, unique())).toMatchObject({ id: holder.id, outcome: 'kept' })
  const second = await startMember({ url, settings: swift })
  await second.runs(holder.id, 2)
  second.order({ open: 'all' })
  await holder.result()
  expect(await hf.submit(kinds.hold, null, unique())).toMatchObject({ outcome: 'submitted' })
})
