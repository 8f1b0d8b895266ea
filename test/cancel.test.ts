import { defineJob } from 'holdfast'
import { allStates, can } from '#holdfast/job/machine'
import { waiting } from './barrier/given.ts'
import { expect, gate, test, until } from './fixtures.ts'

test('a job that waits can be cancelled, and is never claimed', async ({ given, hf }) => {
  const { id, queue } = await given.queued()
  await hf.cancel(id, { reason: 'nobody wants it' })
  expect(await hf.get(id)).toMatchObject({
    state: 'cancelled',
    error: { code: 'job_cancelled', message: 'nobody wants it' },
  })
  expect(await given.claim({ sessionId: await given.session(), queue })).toEqual([])
})

test('of many who cancel one job at once, one wins; the others are told that it is cancelled', async ({
  given,
  hf,
  query,
}) => {
  const { id } = await given.running()
  const answers = await Promise.allSettled(Array.from({ length: 10 }, () => hf.cancel(id)))
  expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  for (const answer of answers)
    if (answer.status === 'rejected')
      expect(answer.reason).toMatchObject({ code: 'move_illegal', details: { state: 'cancelled' } })
  expect(await query(`select count(*)::int as n from holdfast.event where type = 'job.cancelled'`)).toEqual([{ n: 1 }])
})

test('cancels that come at once share statements', async ({ hf, query }) => {
  const wanted = await hf.submitMany(
    defineJob('unwanted', { run: () => {} }),
    Array.from({ length: 1_000 }, () => ({ input: null })),
  )
  await Promise.all(wanted.map(({ id }, place) => hf.cancel(id, { reason: place % 2 === 0 ? 'even' : 'odd' })))
  const [told] = await query<{ n: number; statements: number }>(
    `select count(*)::int as n, count(distinct finished_at)::int as statements from holdfast.outcome where state = 'cancelled'`,
  )
  expect(told?.n).toBe(1_000)
  expect(told?.statements).toBeLessThan(30)
  expect((await hf.get(wanted[7]?.id as string))?.error?.message).toBe('odd')
})

test('a fan-out that a stranger holds delays no cancel that comes with its own', async ({
  given,
  store,
  hf,
  pool,
  query,
}) => {
  const held = await waiting({ given, store })
  const free = await Promise.all(Array.from({ length: 20 }, () => given.queued()))
  const stranger = await pool.connect()
  await stranger.query('begin')
  await stranger.query('select from holdfast.barrier for update')
  let isOver = false
  const cancelled = hf.cancel(held.parent.id).then(() => {
    isOver = true
  })
  await Promise.all(free.map(({ id }) => hf.cancel(id)))
  expect(isOver).toBe(false)
  await stranger.query('rollback')
  stranger.release()
  await cancelled
  expect(await query('select from holdfast.job_status where finished_at is null')).toEqual([])
})

test('a job that does not exist is told apart from one that cannot be cancelled now', async ({ given, hf }) => {
  await expect(hf.cancel('01890a5d-ac96-774b-bcce-b302099a8057')).rejects.toMatchObject({ code: 'job_not_found' })
  const { id } = await given.finished()
  await expect(hf.cancel(id)).rejects.toMatchObject({
    code: 'move_illegal',
    message: expect.stringContaining('succeeded'),
  })
})

test.for(allStates.filter((state) => state !== 'waiting'))(
  'a job that is %s can be cancelled and redone exactly when the machine says so',
  async (state, { given, hf }) => {
    for (const move of ['cancel', 'redo'] as const) {
      const { id } = await (state === 'queued'
        ? given.queued()
        : state === 'running'
          ? given.running()
          : given.finished(state as never))
      expect((await hf.get(id))?.state).toBe(state)
      const made = await hf[move](id).then(
        () => true,
        (error) => (error.code === 'move_illegal' ? false : Promise.reject(error)),
      )
      expect(made).toBe(can(move, state))
    }
  },
)

test('a running job is cancelled at once: its signal fires, its late success is refused', async ({ open }) => {
  const started = gate<AbortSignal>()
  const finish = gate<string>()
  const stubborn = defineJob('stubborn', {
    run: async ({ signal }) => {
      started.open(signal)
      return finish.promise
    },
  })
  // a heartbeat so long that only the abort's own news can be in time
  const hf = await open({ jobs: [stubborn], heartbeatMs: 10_000, lostAfterMs: 20_000, leaseMs: 30_000 })
  await hf.work()
  const handle = await hf.submit(stubborn, null)
  const signal = await started.promise
  const awaited = expect(handle.result()).rejects.toMatchObject({ code: 'job_cancelled' })
  await hf.cancel(handle.id)
  expect(await hf.get(handle.id)).toMatchObject({ state: 'cancelled' })
  await until(() => signal.aborted, 'the signal fires')
  expect(signal.reason).toMatchObject({ name: 'AttemptAborted', reason: 'cancelled' })
  finish.open('too late')
  await awaited
  expect(await hf.get(handle.id)).toMatchObject({ state: 'cancelled', outputs: {} })
  expect((await hf.timeline(handle.id)).map(({ type }) => type)).toEqual(['job.submitted', 'job.cancelled'])
})

test('a cancel is heard even if its announcement is lost', async ({ open, query }) => {
  const started = gate<AbortSignal>()
  const patient = defineJob('patient', {
    run: ({ signal }) => {
      started.open(signal)
      return new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
  })
  const hf = await open({ jobs: [patient], pooled: true, heartbeatMs: 100 })
  await hf.work()
  const { id } = await hf.submit(patient, null)
  const signal = await started.promise
  await hf.cancel(id)
  await until(() => signal.aborted, 'the signal fires')
  expect(signal.reason).toMatchObject({ reason: 'cancelled' })
  expect(await query('select * from holdfast.refusal')).toEqual([])
})
