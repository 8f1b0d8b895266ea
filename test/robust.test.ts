import { defineJob } from 'holdfast'
import { duties } from '#holdfast/reaper/duties'
import { migrate } from '#holdfast/schema/migrate'
import { sweepOf } from './crash/sweep.ts'
import { expect, gate, test, until } from './fixtures.ts'

const oddities: [string, () => never][] = [
  [
    'an error whose message is an object',
    () => {
      throw Object.assign(new Error('x'), { message: { code: 1 } })
    },
  ],
  [
    'an error whose stack is a list',
    () => {
      throw Object.assign(new Error('x'), { stack: ['a'] })
    },
  ],
  [
    'an object without a prototype',
    () => {
      throw Object.create(null)
    },
  ],
  [
    'an object with a getter that throws',
    () => {
      throw {
        get name() {
          throw new Error('never')
        },
      }
    },
  ],
  [
    'a revoked proxy',
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()
      throw proxy
    },
  ],
  [
    'null',
    () => {
      throw null
    },
  ],
]

test.for(oddities)('a handler that throws %s fails its attempt, and its worker lives on', async ([, odd], { open }) => {
  const strange = defineJob('strange', { retries: 0, run: odd })
  const plain = defineJob('plain', { run: () => 'fine' })
  const hf = await open({ jobs: [strange, plain] })
  await hf.work()
  const { id } = await hf.submit(strange, null)
  const job = await until(async () => {
    const now = await hf.get(id)
    return now?.state === 'failed' && now
  }, 'the odd handler has failed')
  expect(job.error?.code).toBe('handler_failed')
  expect(await (await hf.submit(plain, null)).result({ timeout: 10_000 })).toMatchObject({ output: 'fine' })
})

test('what a late claim took in a worker’s name is given back with the next heartbeat', async ({ open, query }) => {
  const plain = defineJob('plain', { timeoutMs: 3_600_000, run: ({ attempt }) => attempt })
  const hf = await open({ jobs: [plain] })
  const working = await hf.work()
  await hf.pauseQueue('default')
  const handle = await hf.submit(plain, null)
  // as if a claim that the worker had given up were carried out only now
  await query(
    `with taken as (delete from holdfast.ready where job_id = $2 returning *)
    insert into holdfast.lease (session_id, deadline_at, due_at, low_id, high_id, stage, priority, kind, queue, tenant, done, job_ids)
    select $1, now() + interval '1 hour', now(), job_id, job_id, stage, priority, kind, queue, tenant, '0', array[job_id] from taken`,
    [working.sessionId(), handle.id],
  )
  await hf.resumeQueue('default')
  expect(await handle.result({ timeout: 15_000 })).toMatchObject({ output: 2 })
})

test('an outcome that the server could not write for a while is written later, and costs no retry', async ({
  open,
  url,
  pool,
  query,
}) => {
  await query(`alter database ${new URL(url).pathname.slice(1)} set lock_timeout = '200ms'`)
  const costly = defineJob('costly', { retries: 0, run: () => 'costly' })
  const hf = await open({ jobs: [costly] })
  await hf.work()
  const blocker = await pool.connect()
  await blocker.query('begin')
  await blocker.query('lock table holdfast.stage_output in share mode')
  const handle = await hf.submit(costly, null)
  await until(
    async () =>
      (await query(`select from pg_locks where relation = 'holdfast.stage_output'::regclass and not granted`)).length >
      0,
    'the settle waits for the lock',
  )
  await until(
    async () =>
      (await query(`select from pg_locks where relation = 'holdfast.stage_output'::regclass and not granted`))
        .length === 0,
    'the settle has given up once',
  )
  await blocker.query('commit')
  blocker.release()
  expect(await handle.result({ timeout: 15_000 })).toMatchObject({ output: 'costly' })
})

test('a job whose kind has moved to another queue is reported', async ({ open, store }) => {
  const before = defineJob('moved', { queue: 'old', run: () => {} })
  const after = defineJob('moved', { queue: 'new', run: () => {} })
  const neighbour = defineJob('neighbour', { queue: 'old', run: () => {} })
  const hf = await open({ jobs: [after, neighbour] })
  await hf.work()
  await hf.submit(before, null)
  const stranded = duties.filter(({ name }) => name === 'reportStranded')
  const swept = await sweepOf(store, stranded)
  expect(swept.stranded).toMatchObject([{ queue: 'old', kind: 'moved' }])
})

test('a job cancelled while it waits in a worker never starts', async ({ open, query }) => {
  const held = gate()
  const started: unknown[] = []
  const one = defineJob('one', {
    run: async ({ input, job }) => {
      started.push(job.id)
      if (input === 'hold') await held.promise
    },
  })
  const hf = await open({ jobs: [one], concurrency: 1, holdMs: 60_000 })
  // short ones make the worker claim ahead; then one holds its only handler
  const short = Array.from({ length: 300 }, () => ({ input: null as unknown }))
  const handles = await hf.submitMany(one, [...short, { input: 'hold' as unknown }, ...short])
  await hf.work()
  const holding = handles[300]?.id as string
  await until(() => started.includes(holding), 'the handler is held')
  const waiting = await until(
    async () => (await hf.list({ state: 'running' })).find(({ id }) => id !== holding),
    'a job waits behind it',
  )
  await hf.cancel(waiting.id)
  const beat = async () => (await query<{ at: string }>('select heartbeat_at::text as at from holdfast.session'))[0]?.at
  for (let beats = 0; beats < 2; beats++) {
    const last = await beat()
    await until(async () => (await beat()) !== last, 'the worker has asked which attempts are still its own')
  }
  held.open()
  const settled = await Promise.allSettled(handles.map((handle) => handle.result({ timeout: 20_000 })))
  expect(settled.filter(({ status }) => status === 'rejected')).toHaveLength(1)
  expect(started).not.toContain(waiting.id)
}, 60_000)

test('a close in the middle of a start ends both, and whatever comes after is told so', async ({ open }) => {
  const plain = defineJob('plain', { run: () => {} })
  const hf = await open({ jobs: [plain] })
  const starting = hf.work().then(
    () => 'started',
    (error) => error.code,
  )
  const reading = Promise.all(Array.from({ length: 50 }, () => hf.list()))
  await hf.close()
  expect(['started', 'not_running']).toContain(await starting)
  expect(await reading).toHaveLength(50)
  await expect(hf.submit(plain, null)).rejects.toMatchObject({ code: 'not_running' })
  await expect(hf.work()).rejects.toMatchObject({ code: 'not_running' })
  await expect(hf.reap()).rejects.toMatchObject({ code: 'not_running' })
})

test('a result can be awaited without end, and not for a time that is none', async ({ open }) => {
  const plain = defineJob('plain', { run: () => 1 })
  const hf = await open({ jobs: [plain] })
  const handle = await hf.submit(plain, null)
  await expect(handle.result({ timeout: Number.NaN })).rejects.toMatchObject({ code: 'option_invalid' })
  await expect(handle.result({ timeout: -1 })).rejects.toMatchObject({ code: 'option_invalid' })
  const endless = handle.result({ timeout: Number.POSITIVE_INFINITY })
  await hf.work()
  expect(await endless).toMatchObject({ output: 1 })
})

test('large submits with the same keys in opposite order do not stop each other', async ({ open }) => {
  const hf = await open({ batchSize: 500 })
  const keyed = defineJob('keyed', { run: () => {} })
  const all = Array.from({ length: 1_500 }, (_, index) => ({ input: index, key: `key-${index}` }))
  const answers = await Promise.all(
    [all, all.toReversed(), all, all.toReversed()].map((jobs) => hf.submitMany(keyed, jobs)),
  )
  expect(answers.flat().filter(({ isNew }) => isNew)).toHaveLength(1_500)
  expect(answers[1]?.[0]?.id).toBe(answers[0]?.at(-1)?.id)
})

test('a migration with nothing to do needs no rights of an owner', async ({ url, query }) => {
  await query(`create role reader_${process.pid} login password 'x'`)
  await query(`grant usage on schema holdfast to reader_${process.pid}`)
  await query(`grant select on holdfast.migration, holdfast.definition to reader_${process.pid}`)
  const theirs = new URL(url)
  theirs.username = `reader_${process.pid}`
  theirs.password = 'x'
  try {
    expect(await migrate(theirs.href)).toEqual([])
  } finally {
    await query(`drop owned by reader_${process.pid}`)
    await query(`drop role reader_${process.pid}`)
  }
})

test('a kind that is retried for as long as it takes is retried however often it has failed', async ({
  open,
  query,
}) => {
  const stubborn = defineJob('stubborn', {
    retries: Number.MAX_SAFE_INTEGER,
    backoff: { baseMs: 0 },
    run: ({ attempt }) => {
      if (attempt < 3) throw new Error('Not yet.')
      return 'at last'
    },
  })
  const hf = await open({ jobs: [stubborn] })
  const handle = await hf.submit(stubborn, null)
  await query('update holdfast.ready set failures = 32767')
  await hf.work()
  expect(await handle.result({ timeout: 15_000 })).toMatchObject({ output: 'at last' })
}, 60_000)
