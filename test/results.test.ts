import { defineJob } from 'holdfast'
import pg from 'pg'
import { z } from 'zod'
import { endingsOf } from '#holdfast/reads/results.sql'
import { expect, gate, test, until } from './fixtures.ts'
import { makeWire } from './wire.ts'

const echo = defineJob('echo', { input: z.number(), run: ({ input }) => input })

test('twenty thousand waits at once are answered, in groups, while the worker of their process goes on', {
  timeout: 120_000,
}, async ({ url, open }) => {
  const count = 20_000
  const wire = await makeWire(url)
  const hf = await open({ url: wire.url, jobs: [echo], concurrency: 50 })
  const handles = await hf.submitMany(
    echo,
    Array.from({ length: count }, (_, index) => ({ input: index })),
  )
  const results = Promise.all(handles.map((handle) => handle.result()))
  await hf.work()
  expect((await results).map(({ output }) => output)).toEqual(handles.map((_, index) => index))
  const looks = wire.statements.filter((name) => /^job\.(state|final|endings)$/.test(name))
  console.log(`${count} waits: ${looks.length} statements`)
  expect(looks.length).toBeLessThan(count / 20)
})

test('waits that get no answer from the database take no connection from submits, and get no error for waiting', async ({
  url,
  open,
  query,
}) => {
  const warnings: string[] = []
  const warn = (_facts: object, text: string) => void warnings.push(text)
  const log = { debug: () => {}, info: () => {}, warn, error: () => {} }
  const hf = await open({ jobs: [echo], poolSize: 2, statementTimeoutMs: 4_000, log })
  const handles = await hf.submitMany(
    echo,
    Array.from({ length: 100 }, (_, index) => ({ input: index })),
  )
  const stranger = new pg.Client(url)
  await stranger.connect()
  await stranger.query('begin; lock table holdfast.outcome in access exclusive mode')
  const results = Promise.allSettled(handles.map((handle) => handle.result()))
  const isBlocked = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
  await until(async () => (await query(isBlocked)).length === 1, 'a look waits')
  const read = hf.get((handles[0] as (typeof handles)[0]).id).catch(() => {})
  await until(async () => (await query(isBlocked)).length === 2, 'a read waits on one of two connections')
  await hf.submit(echo, 1)
  expect(warnings).toEqual([])
  await until(() => warnings.includes('could not check for results'), 'the look was given up')
  await stranger.query('rollback')
  await stranger.end()
  await read
  await hf.work()
  const told = await results
  expect(told.filter(({ status }) => status === 'rejected')).toEqual([])
})

test('a settle wakes whoever waits for that job, and nobody else', { timeout: 120_000 }, async ({ url, open }) => {
  const wire = await makeWire(url)
  const done = gate()
  const ran: number[] = []
  const slow = defineJob('slow', { run: () => done.promise.then(() => 'slow') })
  const note = defineJob('note', { input: z.number(), run: ({ input }) => void ran.push(input) })
  const hf = await open({ url: wire.url, jobs: [slow, note], concurrency: 5 })
  await hf.work()
  const sinceMs = performance.now()
  const result = (await hf.submit(slow, null)).result()
  for (let index = 0; index < 200; index++) {
    await hf.submit(note, index)
    await until(() => ran.length > index)
  }
  const looks = wire.statements.filter((name) => /^job\.(final|endings)$/.test(name)).length
  const tookMs = performance.now() - sinceMs
  console.log(`200 settles beside a wait: ${looks} looks in ${Math.round(tookMs)} ms`)
  // by its age it is looked for about thirty times in the first two seconds, then twice a second
  expect(looks).toBeLessThan(40 + tookMs / 400)
  done.open()
  expect(await result).toMatchObject({ output: 'slow' })
})

test('a wait of no time at all tells what is there', async ({ open }) => {
  const hf = await open({ jobs: [echo] })
  const { id } = await hf.submit(echo, 7)
  await expect(hf.handle(id).result({ timeout: 0 })).rejects.toMatchObject({ code: 'result_timeout' })
  await hf.work()
  await hf.handle(id).result()
  expect(await hf.handle(id).result({ timeout: 0 })).toMatchObject({ output: 7 })
})

test('results that are too large to travel together come one after the other', {
  timeout: 120_000,
}, async ({ open, query }) => {
  const large = defineJob('large', { run: () => Array.from({ length: 50_000 }, () => Math.random()) })
  const hf = await open({ jobs: [large] })
  const handles = await hf.submitMany(
    large,
    Array.from({ length: 12 }, () => ({ input: null })),
  )
  await hf.work()
  await until(
    async () => (await query('select from holdfast.job_status where finished_at is not null')).length === 12,
    'all have ended',
    50_000,
  )
  const ended = await Promise.all(handles.map((handle) => handle.result()))
  expect(ended.map(({ output }) => (output as number[]).length)).toEqual(handles.map(() => 50_000))
})

test('a result that cannot be read is refused to those who wait for it, and to nobody else', {
  timeout: 120_000,
}, async ({ open, query }) => {
  const hf = await open({ jobs: [echo] })
  const handles = await hf.submitMany(
    echo,
    Array.from({ length: 20 }, (_, input) => ({ input })),
  )
  await hf.work()
  await Promise.all(handles.map((handle) => handle.result()))
  const bad = handles[7] as (typeof handles)[number]
  await query(`create function public.broken() returns json language plpgsql as $$
      begin raise 'missing chunk number 0 for toast value' using errcode = 'data_corrupted'; end $$;
    alter table holdfast.stage_output rename to stored_output;
    create view holdfast.stage_output as
      select job_id, stage, name, attempt, at, bytes, case when job_id = '${bad.id}' then public.broken() else output end as output
      from holdfast.stored_output`)
  const told = await Promise.allSettled(handles.map((handle) => handle.result()))
  expect(told.map(({ status }) => status)).toEqual(handles.map((handle) => (handle === bad ? 'rejected' : 'fulfilled')))
})

test('results travel together only as long as they are small when unpacked', {
  timeout: 120_000,
}, async ({ open, store }) => {
  const zeros = defineJob('zeros', { run: () => '0'.repeat(3_000_000) })
  const hf = await open({ jobs: [zeros] })
  const handles = await hf.submitMany(zeros, [{ input: null }, { input: null }, { input: null }])
  await hf.work()
  await until(async () => (await hf.list({ kind: 'zeros', state: 'succeeded' })).length === 3, 'all have ended', 50_000)
  const rows = await store.run(endingsOf, { ids: handles.map(({ id }) => id), unseen: [], mostBytes: 4_000_000 })
  expect(rows.filter(({ outputs }) => outputs === null)).toHaveLength(1)
})
