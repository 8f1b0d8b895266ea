import { defineJob } from 'holdfast'
import { expect, test, until } from './fixtures.ts'

const sized = (bytes: number) => 'x'.repeat(bytes - 2) // two quotes around it
const control = String.fromCharCode(0x1e, 0x1f, 0x0a, 0x09, 0x7f)

/** What a job may bring, and whether that stands in a row of its own. */
const brought: [
  what: string,
  input: unknown,
  how: { meta?: Record<string, unknown>; traceparent?: string },
  isApart: boolean,
][] = [
  ['as many bytes as a claim takes along', sized(120), {}, false],
  ['a byte more than a claim takes along', sized(121), {}, false],
  ['as many bytes as a row takes', sized(500), {}, false],
  ['a byte more than a row takes', sized(501), {}, true],
  ['meta', { page: 1 }, { meta: { from: 'test' } }, true],
  ['a trace', { page: 2 }, { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }, true],
  ['letters of several bytes', 'ä€😀'.repeat(50), {}, false],
  ['few letters of many bytes', '😀'.repeat(130), {}, true],
  ['the JSON null', null, {}, false],
  ['the word null', 'null', {}, false],
  ['control characters', `a${control}b`, {}, false],
  ['many control characters', control.repeat(100), {}, true],
  ['what a list of texts is written with', ['"', '\\', '\\"', '{}', ',', 'NULL', "'", '$1'], {}, false],
  ['empty things', ['', {}, []], {}, false],
  ['a number', 1.5e300, {}, false],
]

const places = `
  select job.id, job.input is not null as is_within, payload.job_id is not null as is_apart
  from holdfast.job left join holdfast.job_payload as payload on payload.job_id = job.id`

test('whatever its input is, a handler is given what was submitted, and again after a redo', async ({
  open,
  query,
}) => {
  const seen = new Map<string, unknown[]>()
  const echo = defineJob('echo', {
    retries: 0,
    run: ({ job, input }: { job: { id: string }; input: unknown }) => {
      seen.set(job.id, [...(seen.get(job.id) ?? []), input])
      throw new Error('no')
    },
  })
  const hf = await open({ jobs: [echo] })
  const handles = await hf.submitMany(
    echo,
    brought.map(([, input, how]) => ({ input, ...how })),
  )
  const expectInPlace = async (state: string, turn: string) => {
    const rows = new Map((await query<{ id: string }>(places)).map(({ id, ...place }) => [id, place]))
    for (const [index, [what, input, { meta = null }, isApart]] of brought.entries()) {
      const id = handles[index]?.id as string
      expect(await hf.get(id), `${what}, ${turn}`).toMatchObject({ state, input, meta })
      expect(rows.get(id), `${what}, ${turn}`).toEqual({ is_within: !isApart, is_apart: isApart })
    }
  }
  const allFailed = async () => (await hf.list({ state: ['failed'], limit: 100 })).length === brought.length

  await expectInPlace('queued', 'submitted')
  const working = await hf.work()
  await until(allFailed, 'all have failed')
  await working.stop()
  await expectInPlace('failed', 'failed')
  for (const { id } of handles) await hf.redo(id)
  await expectInPlace('queued', 'redone')
  await hf.work()
  await until(allFailed, 'all have failed again')
  await expectInPlace('failed', 'failed again')
  expect(handles.map(({ id }) => seen.get(id))).toEqual(brought.map(([, input]) => [input, input]))
  expect((await hf.audit()).violations).toEqual([])
})

test('an input is the same whether its job is submitted alone, with others, or in a transaction', async ({
  hf,
  pool,
}) => {
  const echo = defineJob('echo', { run: () => {} })
  const client = await pool.connect()
  for (const [what, input, how] of brought) {
    const alone = await hf.submit(echo, input, how)
    await client.query('begin')
    const within = await hf.submit(echo, input, { ...how, tx: client })
    await client.query('commit')
    for (const { id } of [alone, within]) expect((await hf.get(id))?.input, what).toEqual(input)
  }
  client.release()
})

test('an input that stood in the row of its job is there when it is cancelled, and after a crash', async ({
  given,
  hf,
}) => {
  const input = { page: 7 }
  const cancelled = await given.finished('cancelled', { input })
  const lost = await given.attemptThatWasLost({ input })
  const [again] = await given.claim({ sessionId: await given.session(), queue: lost.queue })
  expect(again).toMatchObject({ id: lost.id, attempt: 2, input: JSON.stringify(input) })
  for (const { id } of [cancelled, lost]) expect((await hf.get(id))?.input).toEqual(input)
})
