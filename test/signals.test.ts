import { defineJob, type Holdfast, type JobId } from 'holdfast'
import { memberKinds as kinds, startMember, swift } from './crash/member.ts'
import { expect, test, until } from './fixtures.ts'

const approval = defineJob('approval', {
  stages: [
    { name: 'draft', run: () => 'a draft' },
    { name: 'approve', wait: { signal: 'approved', timeoutMs: 600_000 } },
    { name: 'publish', run: ({ outputs }) => outputs },
  ],
})
const impatient = (timeoutMs: number, optional = false) =>
  defineJob('impatient', {
    stages: [
      { name: 'draft', run: () => 'a draft' },
      { name: 'approve', optional, wait: { signal: 'approved', timeoutMs } },
    ],
  })

const typesOf = (events: { type: string }[]) => events.map(({ type }) => type)
const isWaiting = async (hf: Holdfast, id: JobId) => {
  const job = await hf.get(id)
  return job?.state === 'queued' && job.stage === 1 && (job.runAt?.getTime() ?? 0) > Date.now() + 1_000
}
const waits = (hf: Holdfast, id: JobId) => until(() => isWaiting(hf, id), 'it waits for its signal')

test('a stage waits for a signal, and its payload is the output of the stage', async ({ open }) => {
  const hf = await open({ jobs: [approval] })
  await hf.work()
  const handle = await hf.submit(approval, null)
  await waits(hf, handle.id)
  expect(await hf.why(handle.id)).toMatchObject({
    verdict: { code: 'waits-for-signal', sentence: expect.stringMatching(/waits for the signal `approved`/) },
    repair: null,
  })
  expect(await hf.signal(handle.id, 'approved', { by: 'mia' }, { by: 'the web app' })).toEqual({
    isNew: true,
    isAwaited: true,
  })
  expect(await handle.result()).toMatchObject({
    output: { draft: 'a draft', approve: { by: 'mia' } },
    outputs: { approve: { by: 'mia' } },
  })
  const timeline = await hf.timeline(handle.id)
  expect(typesOf(timeline)).toEqual([
    'job.submitted',
    'job.advanced',
    'job.snoozed',
    'job.signalled',
    'job.advanced',
    'job.finished',
  ])
  expect(timeline[2]?.data).toMatchObject({ signal: 'approved', runAt: expect.any(String) })
  expect(timeline[3]?.data).toEqual({ signal: 'approved', by: 'the web app' })
  expect(await hf.get(handle.id)).toMatchObject({ failures: 0, crashes: 0 })
  expect((await hf.audit()).violations).toEqual([])
})

test('a signal that comes before its stage is kept, and the first one counts', async ({ open }) => {
  const hf = await open({ jobs: [approval] })
  const handle = await hf.submit(approval, null)
  expect(await hf.signal(handle.id, 'approved', 1)).toEqual({ isNew: true, isAwaited: false })
  expect(await hf.signal(handle.id, 'approved', 2)).toEqual({ isNew: false, isAwaited: false })
  await hf.work()
  expect(await handle.result()).toMatchObject({ outputs: { approve: 1 } })
  expect(typesOf(await hf.timeline(handle.id))).not.toContain('job.snoozed')
  await expect(hf.signal(handle.id, 'approved', 3)).rejects.toMatchObject({ code: 'signal_refused', status: 409 })
})

test('a signal without a payload gives the stage no output', async ({ open }) => {
  const hf = await open({ jobs: [approval] })
  await hf.work()
  const handle = await hf.submit(approval, null)
  await waits(hf, handle.id)
  await hf.signal(handle.id, 'approved')
  expect(await handle.result()).toMatchObject({ output: { draft: 'a draft', approve: null } })
})

test('a signal that races the start of its wait is never lost', { timeout: 60_000 }, async ({ open }) => {
  const now = defineJob('now', {
    stages: [
      { name: 'approve', wait: { signal: 'approved', timeoutMs: 600_000 } },
      { name: 'publish', run: ({ outputs }) => outputs.approve },
    ],
  })
  const [hf, other] = [await open({ jobs: [now] }), await open({ jobs: [now] })]
  await Promise.all([hf.work(), other.work()])
  let awaited = 0
  for (let round = 0; round < 40; round++) {
    const handles = await Promise.all(Array.from({ length: 10 }, () => hf.submit(now, null)))
    // each a little later than the one before, so that some hit the very moment at which the wait is written
    const sent = await Promise.all(
      handles.map(async ({ id }, index) => {
        for (let turn = 0; turn < index; turn++) await new Promise((done) => setImmediate(done))
        return other.signal(id, 'approved', index)
      }),
    )
    awaited += sent.filter(({ isAwaited }) => isAwaited).length
    const results = await Promise.all(handles.map((handle) => handle.result({ timeout: 20_000 })))
    expect(results.map(({ output }) => output)).toEqual(handles.map((_, index) => index))
  }
  // both orders were seen
  expect(awaited).toBeGreaterThan(0)
  expect(awaited).toBeLessThan(400)
  expect((await hf.audit()).violations).toEqual([])
})

test('a signal that is sent while the wait is being written waits for it, and wakes the job', async ({
  open,
  pool,
  query,
}) => {
  const hf = await open({ jobs: [approval] })
  const { id } = await hf.submit(approval, null)
  const client = await pool.connect()
  await client.query('begin')
  // as the settle that starts to wait does, in a transaction that takes its time
  await client.query(`select holdfast.wait_until($1, 1::smallint, 'approved')`, [id])
  await client.query(
    `insert into holdfast.signal_wait (job_id, stage, name, until) values ($1, 1, 'approved', now() + interval '1 hour')`,
    [id],
  )
  await client.query(`update holdfast.ready set stage = 1, run_at = now() + interval '1 hour' where job_id = $1`, [id])
  const sending = hf.signal(id, 'approved', 'yes')
  const blocked = `select from pg_stat_activity where wait_event = 'advisory' and query like '%signal.send%'`
  await until(async () => (await query(blocked)).length > 0, 'the signal waits for the wait')
  await client.query('commit')
  client.release()
  expect(await sending).toEqual({ isNew: true, isAwaited: true })
  const [row] = await query(`select run_at <= now() as is_due from holdfast.ready where job_id = $1`, [id])
  expect(row).toEqual({ is_due: true })
})

test('of many signals of one name exactly one counts', async ({ open }) => {
  const hf = await open({ jobs: [approval] })
  await hf.work()
  const handle = await hf.submit(approval, null)
  const sent = await Promise.all(Array.from({ length: 20 }, (_, index) => hf.signal(handle.id, 'approved', index)))
  expect(sent.filter(({ isNew }) => isNew)).toHaveLength(1)
  const first = sent.findIndex(({ isNew }) => isNew)
  expect(await handle.result()).toMatchObject({ outputs: { approve: first } })
})

test('a wait that times out fails its stage without a retry, and later signals are refused', async ({ open }) => {
  const kind = impatient(100)
  const hf = await open({ jobs: [kind] })
  await hf.work()
  const handle = await hf.submit(kind, null)
  await expect(handle.result()).rejects.toMatchObject({
    code: 'job_failed',
    details: { error: { code: 'signal_timeout', message: expect.stringContaining('"approved"') } },
  })
  expect(await hf.get(handle.id)).toMatchObject({ state: 'failed', failures: 1 })
  await expect(hf.signal(handle.id, 'approved')).rejects.toMatchObject({ code: 'signal_refused' })
  // a redo waits anew
  await hf.redo(handle.id)
  await hf.signal(handle.id, 'approved', 'at last').catch(() => undefined)
  await until(async () => (await hf.get(handle.id))?.finishedAt !== null, 'it ends again')
})

test('an optional stage whose wait times out makes its job partial', async ({ open }) => {
  const kind = impatient(50, true)
  const hf = await open({ jobs: [kind] })
  await hf.work()
  expect(await (await hf.submit(kind, null)).result()).toMatchObject({
    state: 'partial',
    outputs: { draft: 'a draft' },
    error: { code: 'signal_timeout' },
  })
})

test('between its timeout and its failure a wait refuses signals, so an accepted signal is never ignored', async ({
  open,
  query,
}) => {
  const kind = impatient(600_000)
  const hf = await open({ jobs: [kind] })
  const { id } = await hf.submit(kind, null)
  await query(
    `insert into holdfast.signal_wait (job_id, stage, name, until) values ($1, 1, 'approved', now() - interval '1 s')`,
    [id],
  )
  const [over] = await query(`select is_sent, is_over from holdfast.await_signal($1, 1::smallint, 'approved', 1)`, [id])
  expect(over).toEqual({ is_sent: false, is_over: true })
  await expect(hf.signal(id, 'approved')).rejects.toMatchObject({
    code: 'signal_refused',
    message: expect.stringContaining('timeout'),
  })
  expect(await query('select from holdfast.signal')).toEqual([])
})

test('a redo asks for a signal of its own, with a timeout of its own', async ({ open, query }) => {
  const kind = defineJob('twice', {
    stages: [
      { name: 'approve', wait: { signal: 'approved', timeoutMs: 600_000 } },
      {
        name: 'publish',
        retries: 0,
        run: () => {
          throw new Error('The press is broken.')
        },
      },
    ],
  })
  const hf = await open({ jobs: [kind] })
  await hf.work()
  const handle = await hf.submit(kind, null)
  await hf.signal(handle.id, 'approved', 'first')
  await expect(handle.result()).rejects.toMatchObject({ code: 'job_failed' })
  // from the failed stage: the signal was delivered, and its output stays
  await hf.redo(handle.id)
  await expect(handle.result()).rejects.toMatchObject({ code: 'job_failed' })
  expect(await query('select name from holdfast.signal')).toEqual([{ name: 'approved' }])
  await hf.redo(handle.id, { from: 'start' })
  await until(
    async () => (await query('select from holdfast.signal_wait where closed_at is null')).length === 1,
    'it waits',
  )
  expect(await hf.signal(handle.id, 'approved', 'second')).toMatchObject({ isNew: true })
  await until(async () => (await hf.get(handle.id))?.outputs.approve === 'second', 'the second signal is delivered')
})

test('a job that waits can be cancelled, and holds no worker', async ({ open }) => {
  const hf = await open({ jobs: [approval], concurrency: 1 })
  await hf.work()
  const handles = await Promise.all(Array.from({ length: 5 }, () => hf.submit(approval, null)))
  for (const { id } of handles) await waits(hf, id)
  const [first, second] = handles as [(typeof handles)[0], (typeof handles)[0]]
  await hf.cancel(first.id)
  await expect(hf.signal(first.id, 'approved')).rejects.toMatchObject({ code: 'signal_refused' })
  await hf.signal(second.id, 'approved', true)
  expect(await second.result()).toMatchObject({ state: 'succeeded' })
  expect((await hf.audit()).violations).toEqual([])
})

test('neither a bulk reschedule nor a unique job moves a job that waits for its signal', async ({ open, query }) => {
  const hf = await open({ jobs: [approval] })
  await hf.work()
  const how = { unique: { key: 'a' } }
  const { id } = await hf.submit(approval, null, how)
  await waits(hf, id)
  const { runAt } = (await hf.get(id)) ?? {}
  const moved = await hf.submit(approval, null, { ...how, onConflict: 'reschedule', delayMs: 3_600_000 })
  expect(moved).toMatchObject({ id, outcome: 'kept' })
  const bulk = await hf.bulk.start({ operation: 'reschedule', delayMs: 3_600_000, filter: { kind: 'approval' } })
  await until(async () => (await hf.bulk.get(bulk.id)).state === 'finished', 'the bulk operation ends')
  expect(await hf.bulk.skipped(bulk.id)).toMatchObject([{ job: id, reason: 'awaiting' }])
  expect(await hf.get(id)).toMatchObject({ runAt })
  expect(await query('select from holdfast.ready')).toHaveLength(1)
  expect((await hf.audit()).violations).toEqual([])
})

test('bad signals are refused with a reason, and change nothing', async ({ open, query }) => {
  const hf = await open({ jobs: [approval], maxOutputBytes: 1_000 })
  await (await hf.work()).stop()
  const { id } = await hf.submit(approval, null)
  const nobody = '01890a5d-ac96-774b-bcce-b302099a8057'
  await expect(hf.signal('x', 'approved')).rejects.toMatchObject({ code: 'id_invalid' })
  await expect(hf.signal(nobody, 'approved')).rejects.toMatchObject({ code: 'job_not_found' })
  await expect(hf.signal(id, 'approved', 1, { tenant: 'other' })).rejects.toMatchObject({ code: 'job_not_found' })
  await expect(hf.signal(id, '', 1)).rejects.toMatchObject({ code: 'option_invalid' })
  await expect(hf.signal(id, 'aproved', 1)).rejects.toMatchObject({
    code: 'signal_unknown',
    message: expect.stringContaining('it waits for "approved"'),
  })
  await expect(hf.signal(id, 'approved', { at: 1n })).rejects.toMatchObject({ code: 'not_storable' })
  await expect(hf.signal(id, 'approved', 'x'.repeat(2_000))).rejects.toMatchObject({ code: 'input_too_large' })
  await expect(hf.signal(id, 'approved', 1, { tennant: 'a' } as never)).rejects.toMatchObject({
    code: 'option_invalid',
  })
  expect(await query('select from holdfast.signal')).toEqual([])
})

test('a wait that cannot work is refused when its kind is defined', () => {
  const define =
    (...stages: object[]) =>
    () =>
      defineJob('odd', { stages: stages as never })
  const wait = { signal: 'go', timeoutMs: 1_000 }
  expect(define({ name: 'a', wait: { signal: 'go' } })).toThrow(/waits without a timeout/)
  expect(define({ name: 'a', wait: { signal: 'go', timeoutMs: 0 } })).toThrow(
    /wait\.timeoutMs 0; use milliseconds from 1/,
  )
  expect(define({ name: 'a', wait: { signal: 'go', timeoutMs: 1e15 } })).toThrow(/one year/)
  expect(define({ name: 'a', wait: { signal: '!', timeoutMs: 1 } })).toThrow(/waits for the signal "!"/)
  expect(define({ name: 'a', wait: 'go' })).toThrow(/must be { signal, timeoutMs }/)
  expect(define({ name: 'a', wait, run: () => 1 })).toThrow(/only one of them/)
  expect(define({ name: 'a', wait, retries: 2 })).toThrow(/with retries, which a stage that waits/)
  expect(define({ name: 'a', wait: { ...wait, timeout: 1 } })).toThrow(/unknown option "timeout"/)
  expect(define({ name: 'a', wait }, { name: 'b', wait })).toThrow(/two stages that wait for the signal "go"/)
})

test('a job whose worker died before or after it began to wait goes on with its signal', async ({ url, hf }) => {
  const first = await startMember({ url, settings: swift })
  const { id } = await hf.submit(kinds.approval, null)
  await waits(hf, id)
  await first.kill('SIGKILL')
  expect(await hf.signal(id, 'approved', 'yes')).toEqual({ isNew: true, isAwaited: true })
  const second = await startMember({ url, settings: swift })
  await second.runs(id)
  second.order({ open: 'all' })
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'it goes on')
  expect(await hf.get(id)).toMatchObject({ failures: 0, crashes: 0, outputs: { approve: 'yes' } })
})

test('the kinds of remote workers wait for signals without their workers', async ({ hf, query }) => {
  const stages = [{ name: 'approve', wait: { signal: 'approved', timeoutMs: 600_000 } }, { name: 'publish' }]
  const session = await hf.remote.open({ kinds: [{ name: 'remote', stages }] })
  const { id } = await hf.submit(defineJob('remote', { run: () => {} }), null)
  expect(await hf.remote.claim(session.id, { waitMs: 300 })).toEqual([])
  expect(await query('select name from holdfast.signal_wait')).toEqual([{ name: 'approved' }])
  expect((await hf.why(id)).verdict.code).toBe('waits-for-signal')
  expect(await hf.signal(id, 'approved', { ok: true })).toEqual({ isNew: true, isAwaited: true })
  const [attempt] = await hf.remote.claim(session.id, { waitMs: 5_000 })
  expect(attempt).toMatchObject({ id, stage: 'publish', outputs: { approve: { ok: true } } })
  const odd = [{ name: 'approve', wait: { signal: 'approved' } as never }]
  await expect(hf.remote.open({ kinds: [{ name: 'odd', stages: odd }] })).rejects.toMatchObject({
    code: 'option_invalid',
    message: expect.stringContaining('timeout'),
  })
})

test('signals are removed with their job', async ({ open, query }) => {
  const hf = await open({ jobs: [approval], keepMs: 0 })
  await hf.work()
  const handle = await hf.submit(approval, null)
  await hf.signal(handle.id, 'approved')
  await until(async () => (await query('select from holdfast.job')).length === 0, 'the job is removed')
  expect(await query('select from holdfast.signal')).toEqual([])
  expect(await query('select from holdfast.signal_wait')).toEqual([])
})
