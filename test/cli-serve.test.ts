import { defineJob } from 'holdfast'
import { ask, call, run } from './cli/command.ts'
import { expect, test, until } from './fixtures.ts'
import { makeWire } from './wire.ts'

const noop = defineJob('noop', { run: () => {} })

interface Key {
  id: string
  name: string
  key: string
  revokedAt: string | null
}

test('keys are created, listed and revoked by command, and serve lets in who has one', async ({ url, open }) => {
  const hf = await open({ jobs: [noop] })
  await hf.work({ concurrency: 1 })
  const env = { HOLDFAST_URL: url }
  const serving = run(['serve', '--http-port', '0'], { env })
  const [, at] = await serving.says(/Serving at (\S+),/)
  await serving.says(/No API keys exist yet/)
  const created = await call(['keys', 'create', '--name', 'web', '--scopes', 'submit,read', '--tenant', 'acme'], {
    env,
  })
  const key = created.stdout.trim()
  expect(key).toMatch(/^hf_[0-9a-f]{32}_/)
  const submit = () =>
    fetch(`${at}/v1/jobs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', prefer: 'wait=10' },
      body: JSON.stringify({ kind: 'noop' }),
    })
  const answer = await submit()
  expect([answer.status, await answer.json()]).toMatchObject([200, { tenant: 'acme', state: 'succeeded' }])
  const [listed] = await ask<Key[]>(['keys', 'list'], { env })
  expect(listed).toMatchObject({ name: 'web', tenant: 'acme', revokedAt: null })
  // an end that is none, or the end of every id, means no key
  for (const word of ['', 'a', 'nothing'])
    expect((await call(['keys', 'revoke', word], { env })).stderr).toContain('key_not_found')
  expect((await ask<Key[]>(['keys', 'list'], { env }))[0]?.revokedAt).toBeNull()
  const revoked = await ask<Key>(['keys', 'revoke', String(listed?.id).slice(-8)], { env })
  expect(revoked).toMatchObject({ id: listed?.id, revokedAt: expect.any(String) })
  await until(async () => (await submit()).status === 401, 'the key is refused', 5_000)
  serving.signal('SIGTERM')
  expect(await serving.exited).toBe(0)
})

test('a server ends although its database does not answer', async ({ url }) => {
  const wire = await makeWire(url)
  const serving = run(['serve', '--http-port', '0'], { env: { HOLDFAST_URL: wire.url } })
  const [, at] = await serving.says(/Serving at (\S+),/)
  await serving.says(/Ready/)
  wire.stall()
  expect((await fetch(`${at}/readyz`)).status).toBe(503)
  const askedMs = performance.now()
  serving.signal('SIGTERM')
  expect(await serving.exited).toBe(0)
  expect(performance.now() - askedMs).toBeLessThan(12_000)
})
