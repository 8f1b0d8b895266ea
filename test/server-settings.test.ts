import { defineJob } from 'holdfast'
import { expect, test } from './fixtures.ts'

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
