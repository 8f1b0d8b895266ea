import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineJob, type Holdfast } from 'holdfast'
import pino from 'pino'
import ts from 'typescript'
import { type HttpServer, makeHttpServer } from '#holdfast/http/server'
import { ladder } from '#holdfast/reaper/recovery-bound'
import { test as base, expect, until } from './fixtures.ts'

const shout = defineJob('shout', { run: () => {} })
const count = defineJob('count', { run: () => {} })
const example = (name: string) => new URL(`../examples/remote/${name}`, import.meta.url).pathname

interface Gateway {
  hf: Holdfast
  server: HttpServer
  /** The same server again, at the same port, after it was stopped. */
  again(): Promise<HttpServer>
}

/** Calls the API as a client of any language does. */
type Api = (method: string, path: string, body?: unknown, key?: string) => Promise<{ status: number; body: never }>

const leaseMs = 1_000

const test = base.extend<{ gateway: Gateway; api: Api; start: (command: string[]) => ChildProcess }>({
  gateway: async ({ open }, use) => {
    const hf = await open({ httpPort: 0, leaseMs, lostAfterMs: 700, heartbeatMs: 200, abortMarginMs: 100 })
    const log = pino({ level: 'silent' })
    let port = 0
    const listening = async () => {
      const server = makeHttpServer({
        engine: () => hf,
        config: { ...hf.config, httpPort: port },
        log,
        needsKey: false,
      })
      await server.start()
      port = Number(new URL(server.url()).port)
      gateway.server = server
      return server
    }
    const gateway: Gateway = { hf, server: undefined as never, again: listening }
    await listening()
    await use(gateway)
    await gateway.server.stop()
  },
  api: async ({ gateway }, use) => {
    await use(async (method, path, body, key) => {
      const response = await fetch(gateway.server.url() + path, {
        method,
        headers: { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) },
        body: body === undefined ? null : JSON.stringify(body),
      })
      return { status: response.status, body: (response.status === 204 ? null : await response.json()) as never }
    })
  },
  start: async ({ gateway }, use) => {
    const started: ChildProcess[] = []
    await use(([command, ...args]) => {
      const env = {
        ...process.env,
        HOLDFAST_SERVER: gateway.server.url(),
        LEASE_MS: String(leaseMs),
        DRAIN_SECONDS: '0',
      }
      const child = spawn(command as string, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
      child.stdout?.resume()
      started.push(child)
      return child
    })
    for (const child of started) if (child.exitCode === null) child.kill('SIGKILL')
  },
})

/** How each example is run: Python as it is, TypeScript by its types taken off, which later versions of Node do themselves. */
const languages: Record<string, () => Promise<string[]>> = {
  async python() {
    try {
      execFileSync('python3', ['--version'], { stdio: 'ignore' })
    } catch {
      throw new Error('The example in Python cannot be tried: there is no python3 on this machine. Install it.')
    }
    return ['python3', example('worker.py')]
  },
  async typescript() {
    const source = await readFile(example('worker.ts'), 'utf8')
    const { outputText } = ts.transpileModule(source, {
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023 },
    })
    const file = join(await mkdtemp(join(tmpdir(), 'holdfast-')), 'worker.mjs')
    await writeFile(file, outputText)
    return [process.execPath, file]
  },
}

/** The session of a process, once it has one that lives. */
function sessionOf(query: <R>(text: string, values: unknown[]) => Promise<R[]>, pid: number | undefined) {
  return until(async () => {
    const [row] = await query<{ id: number }>(
      'select id::int from holdfast.session where pid = $1 and ended_at is null order by id desc',
      [pid],
    )
    return row?.id
  }, 'a session of the worker')
}

test.for(Object.keys(languages))(
  'a worker in %s works, is killed and revived, sees its server go, and stops in good order',
  { timeout: 60_000 },
  async (language, { gateway, api, start, query }) => {
    const { hf } = gateway
    const command = await (languages[language] as () => Promise<string[]>)()
    await hf.reap()
    const first = start(command)
    const session = await sessionOf(query, first.pid)
    const good = await hf.submit(shout, { text: 'hello' } as never)
    expect(await good.result({ timeout: 10_000 })).toMatchObject({ output: { text: 'HELLO', by: language } })
    const bad = await hf.submit(shout, { text: 7 } as never)
    await expect(bad.result({ timeout: 10_000 })).rejects.toMatchObject({ code: 'job_failed' })
    expect(await hf.get(bad.id)).toMatchObject({ attempt: 1, error: { code: 'permanent' } })

    const long = await hf.submit(count, { to: 15 } as never)
    await until(async () => (await hf.get(long.id))?.progress ?? undefined, 'progress of the long job')
    // before the other starts, which on a busy machine may take longer than the job
    first.kill('SIGKILL')
    const second = start(command)
    const heir = await sessionOf(query, second.pid)
    expect(await long.result({ timeout: 15_000 })).toMatchObject({ output: { counted: 15, by: language, mark: '!' } })
    const timeline = await hf.timeline(long.id)
    const revived = timeline.filter(({ type }) => type === 'job.revived')
    expect(revived).toHaveLength(1)
    const bound = ladder(hf.config).find(({ rung }) => rung === 'lease ran out')?.boundMs
    expect((revived as { data: unknown }[])[0]?.data).toMatchObject({ rung: 'lease ran out' })
    const [{ lostMs }] = revived.map(({ data }) => data as unknown as { lostMs: number }) as [{ lostMs: number }]
    expect(lostMs).toBeLessThan(bound as number)
    expect(timeline.some(({ type }) => type === 'job.log')).toBe(true)

    const late = { id: long.id, attempt: 1, outcome: 'succeeded', output: 'late' }
    expect(await api('POST', `/v1/sessions/${session}/settle`, { outcomes: [late] })).toMatchObject({
      status: 200,
      body: { results: [{ id: long.id, attempt: 1, result: 'lease_lost' }] },
    })
    expect(await query('select from holdfast.refusal where job_id = $1', [long.id])).toHaveLength(1)

    // the server is away for longer than the lease
    const kept = await hf.submit(count, { to: 30 } as never)
    await until(async () => (await hf.get(kept.id))?.progress ?? undefined, 'progress of the job that loses its server')
    await gateway.server.stop()
    await until(async () => (await hf.get(kept.id))?.crashes === 1 || undefined, 'the revival of the job')
    await gateway.again()
    expect(await kept.result({ timeout: 15_000 })).toMatchObject({ output: { counted: 30 } })
    expect(await sessionOf(query, second.pid)).toBeGreaterThan(heir)

    const left = await hf.submit(count, { to: 1_000 } as never)
    await until(async () => (await hf.get(left.id))?.state === 'running' || undefined, 'the last job runs')
    second.kill('SIGTERM')
    expect(await once(second, 'exit')).toEqual([0, null])
    expect(await hf.get(left.id)).toMatchObject({ state: 'queued', crashes: 0, failures: 0 })
    expect((await hf.audit()).violations).toEqual([])
  },
)

test('the whole life of a session over HTTP', async ({ gateway: { hf }, api }) => {
  const opened = await api('POST', '/v1/sessions', { kinds: [{ name: 'shout' }], leaseMs: 5_000 })
  expect(opened).toMatchObject({ status: 201, body: { leaseMs: 5_000, heartbeatMs: 1_666 } })
  const { id } = opened.body as { id: number }
  const path = `/v1/sessions/${id}`
  expect(await api('POST', `${path}/claim`, {})).toEqual({ status: 200, body: { attempts: [] } })
  const waiting = api('POST', `${path}/claim`, { most: 5, waitMs: 20_000 })
  const job = await hf.submit(shout, { text: 'hello' } as never)
  const claimed = await waiting
  expect(claimed).toMatchObject({ status: 200, body: { attempts: [{ id: job.id, attempt: 1, stage: 'run' }] } })
  const fence = { id: job.id, attempt: 1 }
  const told = await api('POST', `${path}/progress`, { reports: [{ ...fence, done: 1, total: 2 }] })
  expect(told).toEqual({ status: 200, body: { results: [{ ...fence, result: 'written' }] } })
  const beat = await api('POST', `${path}/heartbeat`, { held: [fence] })
  expect(beat).toMatchObject({ status: 200, body: { lost: [] } })
  const back = await api('POST', `${path}/release`, { attempts: [fence] })
  expect(back).toEqual({ status: 200, body: { results: [{ ...fence, result: 'settled' }] } })
  await api('POST', `${path}/claim`, { waitMs: 5_000 })
  const outcomes = [{ ...fence, attempt: 2, outcome: 'succeeded', output: { text: 'HELLO' } }]
  const settled = { status: 200, body: { results: [{ ...fence, attempt: 2, result: 'settled' }] } }
  expect(await api('POST', `${path}/settle`, { outcomes })).toEqual(settled)
  expect(await api('POST', `${path}/settle`, { outcomes })).toEqual(settled)
  expect(await job.result({ timeout: 5_000 })).toMatchObject({ output: { text: 'HELLO' } })
  expect(await api('DELETE', path)).toEqual({ status: 204, body: null })
  expect(await api('POST', `${path}/claim`, {})).toMatchObject({ status: 410, body: { code: 'session_ended' } })
  const gone = await api('POST', `${path}/heartbeat`, { held: [] })
  expect(gone).toMatchObject({ status: 410, body: { code: 'session_ended' } })
})

test('a key opens sessions of its tenant that no other key finds', async ({ gateway: { hf, server }, api }) => {
  const guarded = makeHttpServer({ engine: () => hf, config: hf.config, log: pino({ level: 'silent' }) })
  await guarded.start()
  try {
    const ask: Api = async (method, path, body, key) => {
      const response = await fetch(guarded.url() + path, {
        method,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: body === undefined ? null : JSON.stringify(body),
      })
      return { status: response.status, body: (response.status === 204 ? null : await response.json()) as never }
    }
    const keyFor = async (tenant: string | null, scope: 'work' | 'read' = 'work') =>
      (await hf.keys.create({ name: 'test', tenant, scopes: [scope] })).key
    const [acme, other, reader] = [await keyFor('acme'), await keyFor('other'), await keyFor('acme', 'read')]
    await hf.submit(shout, null as never, { tenant: 'other' })
    const mine = await hf.submit(shout, null as never, { tenant: 'acme' })
    const kinds = [{ name: 'shout' }]
    expect(await ask('POST', '/v1/sessions', { kinds }, reader)).toMatchObject({ status: 403 })
    const { id } = (await ask('POST', '/v1/sessions', { kinds }, acme)).body as { id: number }
    const claimed = await ask('POST', `/v1/sessions/${id}/claim`, { most: 10 }, acme)
    expect(claimed.body).toMatchObject({ attempts: [{ id: mine.id, tenant: 'acme' }] })
    expect((claimed.body as { attempts: [] }).attempts).toHaveLength(1)
    const calls = [
      ['POST', '/claim', {}],
      ['POST', '/heartbeat', { held: [] }],
      ['POST', '/settle', { outcomes: [{ id: mine.id, attempt: 1, outcome: 'released' }] }],
      ['POST', '/progress', { reports: [] }],
      ['POST', '/release', { attempts: [] }],
      ['DELETE', '', undefined],
    ] as const
    for (const [method, path, body] of calls)
      expect(await ask(method, `/v1/sessions/${id}${path}`, body, other), path).toMatchObject({
        status: 404,
        body: { code: 'session_not_found' },
      })
    expect(await hf.get(mine.id)).toMatchObject({ state: 'running' })
  } finally {
    await guarded.stop()
  }
  expect(server.url()).toBeTruthy()
  expect((await api('POST', '/v1/sessions/999/claim', {})).status).toBe(404)
})

test('a client that goes while it waits leaves nothing behind, and a server that stops answers', async ({
  gateway,
  query,
}) => {
  const { hf, server } = gateway
  const { id } = await hf.remote.open({ kinds: [{ name: 'shout' }] })
  const claim = (signal?: AbortSignal) =>
    fetch(`${server.url()}/v1/sessions/${id}/claim`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ waitMs: 30_000 }),
      ...(signal && { signal }),
    })
  const gone = new AbortController()
  const left = claim(gone.signal).catch(() => 'gone')
  await until(async () => (await query('select from holdfast.session where wants_wake')).length > 0 || undefined)
  gone.abort()
  expect(await left).toBe('gone')
  await fetch(`${server.url()}/v1/sessions`)
  const waiting = claim()
  const job = await hf.submit(shout, null as never)
  const { attempts } = (await (await waiting).json()) as { attempts: { id: string }[] }
  expect(attempts).toMatchObject([{ id: job.id, attempt: 1 }])
  const last = claim()
  await until(async () => (await query('select from holdfast.session where wants_wake')).length > 0 || undefined)
  const startedMs = performance.now()
  await server.stop()
  expect(await (await last).json()).toEqual({ attempts: [] })
  expect(performance.now() - startedMs).toBeLessThan(3_000)
})
