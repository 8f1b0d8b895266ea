import { largeJson, loseLargeValues } from './damage.ts'
import { expect, type Fixtures, test, until } from './fixtures.ts'
import { echo, hook, near, settled } from './webhooks/hooks.ts'

/** Makes the server reject every delivery of one tenant, as a trigger of another program may. */
const rejectDeliveries = (query: Fixtures['query'], tenant: string) =>
  query(`
  create function public.rejected() returns trigger language plpgsql as $$ begin raise exception 'planted: no delivery'; end $$;
  create trigger rejected before insert on holdfast.delivery for each row when (new.tenant = '${tenant}') execute function public.rejected()`)

test('an event whose result the database cannot read is told without it, and keeps no other from being told', async ({
  open,
  query,
}) => {
  const server = await hook()
  const worker = await open({ jobs: [echo], ...near, webhooks: false, publicUrl: 'https://jobs.test' })
  await worker.webhooks.create({ url: server.url, types: ['job.finished', 'job.submitted'] })
  await worker.work()
  const [{ text } = {}] = await query<{ text: unknown }>(`select ${largeJson} as text`)
  const { id } = await worker.submit(echo, text)
  await (await worker.submit(echo, null)).result()
  await until(async () => (await worker.get(id))?.state === 'succeeded', 'both have ended')
  await loseLargeValues(query, 'holdfast.stage_output')
  const hf = await open({ ...near, publicUrl: 'https://jobs.test' })
  await hf.deliver()
  await server.got(4)
  const finished = server.told().filter(({ type }) => type === 'job.finished')
  expect(finished).toHaveLength(2)
  const bad = finished.find(({ subject }) => subject === id)
  expect(bad?.data).toMatchObject({
    job: { id, state: 'succeeded', meta: null },
    result: null,
    resultOmitted: {
      bytes: null,
      reason: expect.stringContaining('failed to read'),
      link: `https://jobs.test/v1/jobs/${id}/result`,
    },
  })
  expect(finished.find(({ subject }) => subject !== id)?.data).not.toHaveProperty('resultOmitted')
})

test('an event whose deliveries the database rejects is parked, keeps no other from being told, and is planned once it can be', async ({
  open,
  query,
}) => {
  const server = await hook()
  const hf = await open(near)
  for (const tenant of ['bad', 'good']) await hf.webhooks.create({ url: server.url, tenant, types: ['job.submitted'] })
  await rejectDeliveries(query, 'bad')
  await hf.deliver()
  const bad = await hf.submit(echo, null, { tenant: 'bad' })
  const good = await hf.submit(echo, null, { tenant: 'good' })
  await server.got(1)
  expect(server.told()).toMatchObject([{ subject: good.id }])
  const [parked] = await hf.events.parked('webhooks')
  expect(parked).toMatchObject({
    error: expect.stringContaining('planted: no delivery'),
    failures: 1,
    event: { type: 'job.submitted', jobId: bad.id, tenant: 'bad' },
  })
  // without a request, it is planned again within a minute or so
  expect(parked?.replayAt?.getTime()).toBeGreaterThan(Date.now())
  await hf.events.replay('webhooks', { parked: 'all' })
  const again = await until(async () => {
    const [now] = await hf.events.parked('webhooks')
    return now?.failures === 2 && now
  }, 'it is rejected again')
  expect(again.replayAt?.getTime()).toBeGreaterThan(Date.now() + 60_000)
  await query('drop trigger rejected on holdfast.delivery')
  await query('update holdfast.parked_event set replay_at = now()')
  await server.got(2)
  expect(server.told()[1]).toMatchObject({ subject: bad.id })
  expect(await hf.events.parked('webhooks')).toEqual([])
  await settled(hf, 'delivered', 2)
})

test('a job stays until the webhooks of its parked events are planned, however briefly it is kept', async ({
  open,
  query,
}) => {
  const server = await hook()
  const hf = await open({ jobs: [echo], ...near, keepMs: 0 })
  await hf.webhooks.create({ url: server.url, types: ['job.finished'] })
  await rejectDeliveries(query, 'default')
  await hf.work()
  const job = await hf.submit(echo, null)
  await until(async () => (await hf.events.parked('webhooks')).length === 1, 'it is parked')
  await hf.prune()
  expect(await hf.get(job.id)).toMatchObject({ state: 'succeeded' })
  await query('drop trigger rejected on holdfast.delivery')
  await query('update holdfast.parked_event set replay_at = now()')
  await server.got(1)
  expect(server.told()).toMatchObject([{ subject: job.id }])
  await settled(hf, 'delivered', 1)
  await until(async () => {
    await hf.prune()
    return (await query('select from holdfast.job')).length === 0
  }, 'it is removed')
})

test('a thousand events whose deliveries are rejected keep a good one behind them only for a while', async ({
  open,
  query,
}) => {
  const server = await hook()
  const hf = await open(near)
  for (const tenant of ['bad', 'good']) await hf.webhooks.create({ url: server.url, tenant, types: ['job.submitted'] })
  await rejectDeliveries(query, 'bad')
  await hf.submitMany(
    echo,
    Array.from({ length: 1_000 }, () => ({ input: null, tenant: 'bad' })),
  )
  const good = await hf.submit(echo, null, { tenant: 'good' })
  await hf.deliver()
  await until(() => server.received.length > 0, 'the good one is told', 60_000)
  expect(server.told()).toMatchObject([{ subject: good.id }])
  expect(await query(`select from holdfast.parked_event where group_name = 'webhooks'`)).toHaveLength(1_000)
}, 90_000)
