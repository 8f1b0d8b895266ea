import type { Holdfast } from 'holdfast'
import { largeJson, loseLargeValues } from './damage.ts'
import { expect, type Fixtures, test, until } from './fixtures.ts'
import { echo, hook, near } from './webhooks/hooks.ts'

const many = (count: number, tenant: string) => Array.from({ length: count }, () => ({ input: null, tenant }))

/** An endpoint that is told of every submit, so that no worker is needed. */
const endpointOf = (hf: Holdfast, tenant: string, url: string) =>
  hf.webhooks.create({ url, tenant, types: ['job.submitted'] })

/** Makes the server reject claims of some deliveries, or any change of them, as a trigger of another program may. */
const reject = (query: Fixtures['query'], what: 'claims' | 'changes', which: string) =>
  query(`
  create function public.rejected() returns trigger language plpgsql as $$ begin raise exception 'planted'; end $$;
  create trigger rejected before update on holdfast.delivery for each row
  when (${which}${what === 'claims' ? ' and new.tries > old.tries' : ''}) execute function public.rejected()`)

test.for(['claims', 'changes'] as const)(
  'a delivery whose %s the database rejects is put off, keeps no other from being sent, and is sent once it can be',
  async (what, { open, query }) => {
    const server = await hook()
    const hf = await open(near)
    for (const tenant of ['bad', 'good']) await endpointOf(hf, tenant, server.url)
    await reject(query, what, `old.tenant = 'bad'`)
    const bad = await hf.submit(echo, null, { tenant: 'bad' })
    await hf.submitMany(echo, many(50, 'good'))
    await hf.deliver()
    await server.got(50)
    expect(server.told().every(({ data }) => data.tenant === 'good')).toBe(true)
    const [delivery] = await hf.webhooks.deliveries({ tenant: 'bad' })
    expect(delivery).toMatchObject({ state: 'pending', tries: 0 })
    if (what === 'claims') expect(delivery?.error).toMatch(/^It can't be claimed: .*planted/)
    expect((await hf.webhooks.list({ tenant: 'bad' }))[0]).toMatchObject({ failingSince: null, disabledAt: null })
    await query('drop trigger rejected on holdfast.delivery')
    await query('update holdfast.delivery set next_at = now() where tries = 0')
    // the sender that could not even write down when to try again has to forget it first
    if (what === 'changes') await (await open(near)).deliver()
    await server.got(51)
    expect(server.told().at(-1)?.subject).toBe(bad.id)
  },
)

test('a delivery whose body cannot be read is put off, and becomes a dead letter in the end', async ({
  open,
  query,
}) => {
  const server = await hook()
  const hf = await open({ ...near, webhookGiveUpMs: 100, webhookBackoffBaseMs: 10 })
  await endpointOf(hf, 'bad', server.url)
  await endpointOf(hf, 'good', server.url)
  await query(`insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, endpoint_id, state, body)
    select 0, 'e', 'job.submitted', 'bad', id::text, id, 'pending', ${largeJson}::text from holdfast.endpoint where tenant = 'bad'`)
  await loseLargeValues(query, 'holdfast.delivery')
  await hf.submit(echo, null, { tenant: 'good' })
  await hf.deliver()
  await server.got(1)
  const dead = await until(async () => (await hf.webhooks.deliveries({ state: 'dead' }))[0], 'it is given up')
  expect(dead).toMatchObject({ tenant: 'bad', tries: 0, error: expect.stringContaining('missing chunk number 0') })
  expect((await hf.webhooks.list({ tenant: 'bad' }))[0]).toMatchObject({ disabledAt: null })
})

test.for(['claims', 'changes'] as const)(
  'a thousand deliveries whose %s are rejected delay other tenants by seconds at most, and their own receiver only for a while',
  { timeout: 90_000 },
  async (what, { open, query }) => {
    const server = await hook()
    const hf = await open(near)
    const { id } = await endpointOf(hf, 'acme', server.url)
    await endpointOf(hf, 'neighbor', server.url)
    await reject(query, what, `old.event_id = 'bad'`)
    await query(
      `insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, endpoint_id, state, body, next_at)
       select -n, case when n = 1001 then 'last' else 'bad' end, 'job.submitted', 'acme', $1::uuid::text, $1::uuid, 'pending', '{}',
         now() - interval '1 hour' + n * interval '1 ms'
       from generate_series(1, 1001) as n`,
      [id],
    )
    await hf.deliver()
    for (let count = 0; count < 5; count++) {
      const startedMs = performance.now()
      const job = await hf.submit(echo, null, { tenant: 'neighbor' })
      await until(() => server.received.some(({ body }) => body.includes(job.id)), 'the neighbor is told')
      expect(performance.now() - startedMs).toBeLessThan(4_000)
    }
    const isSent = () => server.received.some(({ headers }) => headers['webhook-id'] === 'last')
    await until(isSent, 'the good one behind them is sent', 60_000)
    expect(server.received.some(({ headers }) => headers['webhook-id'] === 'bad')).toBe(false)
  },
)
