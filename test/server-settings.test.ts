import { defineJob } from 'holdfast'
import { expect, test, until } from './fixtures.ts'

const nameOf = (url: string) => new URL(url).pathname.slice(1)

test('a database that writes dates in a style of its own runs fan-outs, and tells when a job was submitted', async ({
  url,
  query,
  open,
}) => {
  await query(`alter database ${nameOf(url)} set datestyle = 'German, DMY'`)
  const wide = defineJob('wide', {
    stages: [
      {
        name: 'all',
        retries: 0,
        fanOut: () => [1, 2, 3],
        each: (_ctx, item: number) => item,
        join: (_ctx, all) => all,
      },
    ],
  })
  const hf = await open({ jobs: [wide] })
  await hf.work()
  const handle = await hf.submit(wide, null)
  expect(await handle.result({ timeout: 15_000 })).toMatchObject({ state: 'succeeded', output: { succeeded: 3 } })
  const { submittedAt } = (await hf.get(handle.id)) as { submittedAt: Date }
  expect(Math.abs(submittedAt.getTime() - Date.now())).toBeLessThan(60_000)
})

test('a connection that the server ended for its idleness costs no caller an error', async ({ url, query, open }) => {
  await query(`alter database ${nameOf(url)} set idle_session_timeout = '100ms'`)
  const hf = await open()
  await hf.queues()
  // the end of the connection waits to be read while the next statement is sent on it
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
  expect(await hf.queues()).toEqual([])
})

test.for([
  ['array_nulls', 'off'],
  ['extra_float_digits', '-15'],
])('%s = %s on a database is refused at the start, with what to do', async ([name, value], { url, query, open }) => {
  await query(`alter database ${nameOf(url)} set ${name} = ${value}`)
  await expect(open()).rejects.toMatchObject({
    code: 'database_unsupported',
    message: expect.stringContaining(`${name} = ${value}`),
  })
  await query(`alter database ${nameOf(url)} reset ${name}`)
  await open()
})

test('a transaction that the server ends for its length costs no job its outcome', async ({ query, open }) => {
  // raised by hand, because only Postgres 17 and later have the setting
  await query(`create function overtime() returns trigger language plpgsql as $$
    begin raise exception using errcode = '25P04', message = 'terminating connection due to transaction timeout'; end $$`)
  await query(`create trigger overtime before insert on holdfast.outcome for each row execute function overtime()`)
  const lines: string[] = []
  const log = { debug() {}, info() {}, warn: note, error: note }
  function note(...line: unknown[]): void {
    lines.push(JSON.stringify(line, (_, value) => (value instanceof Error ? value.message : value)))
  }
  const work = defineJob('work', { run: () => 'done' })
  const hf = await open({ jobs: [work], log })
  await hf.work()
  const handle = await hf.submit(work, null)
  await until(() => lines.some((line) => line.includes('transaction_timeout of this server')), 'the setting is named')
  await query(`drop trigger overtime on holdfast.outcome`)
  expect(await handle.result({ timeout: 30_000 })).toMatchObject({ state: 'succeeded', output: 'done' })
  expect(await hf.get(handle.id)).toMatchObject({ attempt: 1, failures: 0 })
})

test('policies that hide rows from a user are refused at the start, with what to do', async ({ url, query, open }) => {
  const role = `${nameOf(url)}_app`
  await query(`create role ${role} login password 'app'`)
  await query(`grant usage on schema holdfast to ${role}`)
  await query(`grant all on all tables in schema holdfast to ${role}`)
  await query(`alter table holdfast.ready enable row level security`)
  const app = new URL(url)
  app.username = role
  app.password = 'app'
  await expect(open({ url: app.href })).rejects.toMatchObject({
    code: 'database_unsupported',
    message: expect.stringContaining('alter table holdfast.ready disable row level security'),
  })
  await open()
  await query(`alter table holdfast.ready disable row level security`)
  await open({ url: app.href })
  await query(`drop owned by ${role}`)
  await query(`drop role ${role}`)
})

test('a cache on the sequence of events is refused at the start, with what to do', async ({ query, open }) => {
  await query(`alter sequence holdfast.event_seq cache 20`)
  await expect(open()).rejects.toMatchObject({
    code: 'database_unsupported',
    message: expect.stringContaining('alter sequence holdfast.event_seq cache 1'),
  })
  await query(`alter sequence holdfast.event_seq cache 1`)
  await open()
})
