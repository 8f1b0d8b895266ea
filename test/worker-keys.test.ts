import { defineJob, type Holdfast } from 'holdfast'
import { expect, test, until } from './http/door.ts'

const shout = defineJob('shout', { run: () => {} })
const kinds = [{ name: 'shout' }]

/** A session with a long lease, opened with a key that is still to be revoked. */
async function opened(hf: Holdfast, url: string, tenant: string | null = 'acme') {
  const made = await hf.keys.create({ name: 'test', tenant, scopes: ['work'] })
  const call = async (method: string, path: string, body: unknown) => {
    const response = await fetch(url + path, {
      method,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${made.key}` },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as never }
  }
  const session = (await call('POST', '/v1/sessions', { kinds, leaseMs: 3_600_000 })).body as { id: string }
  return { key: made, call, session }
}

test('a revoked key ends its sessions at once, and what they hold is given back unharmed', async ({
  hf,
  open,
  serve,
}) => {
  const { url } = await serve(hf)
  const { key, call, session } = await opened(hf, url)
  const other = await opened(hf, url)
  const job = await hf.submit(shout, null as never, { tenant: 'acme' })
  const claimed = await call('POST', `/v1/sessions/${session.id}/claim`, {})
  expect(claimed.body).toMatchObject({ attempts: [{ id: job.id, attempt: 1 }] })
  const waiting = call('POST', `/v1/sessions/${session.id}/claim`, { waitMs: 30_000 })
  // by another process, as `holdfast keys revoke` does it
  await (await open()).keys.revoke(key.id)
  expect(await hf.get(job.id)).toMatchObject({ state: 'queued', crashes: 0, failures: 0 })
  expect((await waiting).status).toBeGreaterThanOrEqual(400)
  const outcome = { id: job.id, attempt: 1, outcome: 'succeeded' }
  const late = await call('POST', `/v1/sessions/${session.id}/settle`, { outcomes: [outcome] })
  expect([401, 200]).toContain(late.status)
  if (late.status === 200) expect(late.body).toMatchObject({ results: [{ result: 'lease_lost' }] })
  expect(await hf.get(job.id)).toMatchObject({ state: 'queued' })
  const [first, second] = await hf.sessions()
  expect([first?.isLive, second]).toEqual([true, undefined])
  expect(await hf.sessions({ ended: true })).toMatchObject([{ endedBy: 'key revoked' }])
  expect((await other.call('POST', `/v1/sessions/${other.session.id}/claim`, {})).body).toMatchObject({
    attempts: [{ id: job.id, attempt: 2 }],
  })
})

test('a server that has not heard yet of the end of a key opens no session with it', async ({ hf, serve, query }) => {
  const { url } = await serve(hf)
  const { key, call } = await opened(hf, url)
  // the server still takes it for good
  await query('update holdfast.api_key set revoked_at = now() where id = $1', [key.id])
  expect(await call('POST', '/v1/sessions', { kinds })).toMatchObject({ status: 401, body: { code: 'key_refused' } })
})

test('the leader ends the sessions of keys that expired, and their jobs count no crash', async ({
  open,
  serve,
  query,
}) => {
  const hf = await open({ sweepMs: 20, leaderRenewMs: 50, leaderLeaseMs: 400 })
  const { url } = await serve(hf)
  const { key, call, session } = await opened(hf, url)
  await hf.remote.open({ kinds, owner: 'not a key', leaseMs: 60_000 })
  const job = await hf.submit(shout, null as never, { tenant: 'acme' })
  await call('POST', `/v1/sessions/${session.id}/claim`, {})
  await query('update holdfast.api_key set expires_at = now() where id = $1', [key.id])
  await hf.reap()
  await until(async () => (await hf.get(job.id))?.state === 'queued' || undefined, 'the job is back in its queue')
  expect(await hf.get(job.id)).toMatchObject({ crashes: 0 })
  expect(await hf.sessions()).toHaveLength(1)
})

test('the id of a session tells a tenant nothing of others, and is of no use to them', async ({ hf, serve, query }) => {
  const { url } = await serve(hf)
  const [acme, mallory] = [await opened(hf, url, 'acme'), await opened(hf, url, 'mallory')]
  for (const { session } of [acme, mallory]) expect(session.id).toMatch(/^[\w-]{40,}$/)
  const [row] = await query<{ id: number }>(`select id::int from holdfast.session where tenant = 'acme'`)
  for (const id of [acme.session.id, String(row?.id), 'x', '0']) {
    const answer = await mallory.call('POST', `/v1/sessions/${id}/claim`, {})
    expect([answer.status, JSON.stringify(answer.body).includes('session 1')]).toEqual([404, false])
  }
  expect((await acme.call('POST', `/v1/sessions/${acme.session.id}/heartbeat`, { held: [] })).status).toBe(200)
  const all = await opened(hf, url, null)
  expect(all.session.id).toBe('3')
})

test('why numbers the sessions of a job for its tenant, and can still repair what it sees', async ({
  hf,
  serve,
  query,
}) => {
  const served = await serve(hf)
  await query(`select setval('holdfast.session_id_seq', 7341)`)
  const { call, session } = await opened(hf, served.url)
  const job = await hf.submit(shout, null as never, { tenant: 'acme' })
  await call('POST', `/v1/sessions/${session.id}/claim`, {})
  const reader = await served.as('acme', 'read', 'operate')
  const seen = await reader.whyJob({ path: { id: job.id } })
  expect(JSON.stringify(seen.data)).not.toContain('7342')
  expect(seen.data).toMatchObject({
    verdict: { sentence: expect.stringContaining('on session 1,') },
    facts: { job: { sessionId: 1 }, session: { id: 1 } },
  })
  expect((await hf.why(job.id)).facts.session).toMatchObject({ id: 7342 })
  await query(`update holdfast.session set lease_until = now(), heartbeat_at = now()`)
  const repaired = await reader.repairJob({ path: { id: job.id }, body: {} })
  expect(repaired.data).toMatchObject({ repair: 'revive', isApplied: true })
  expect(await hf.get(job.id)).toMatchObject({ state: 'queued' })
})
