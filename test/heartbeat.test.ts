import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { defineJob } from 'holdfast'
import { describe, vi } from 'vitest'
import { library, moduleOf, run } from './cli/command.ts'
import { memberKinds as kinds, type Line, startMember, swift } from './crash/member.ts'
import { type Harm, makeSabotage } from './crash/sabotage.ts'
import { expect, quick, test, until } from './fixtures.ts'
import { makeWire } from './wire.ts'

vi.setConfig({ testTimeout: 90_000 })

/** Quick, and yet with time for a thread to start on a busy machine before a job could be lost. */
const settings = { ...quick, heartbeatMs: 200, lostAfterMs: 20_000, leaseMs: 60_000 } as const

const isAbort = (aborted: unknown, id: string, reason?: string) => {
  const facts = aborted as { id: string; reason: string } | undefined
  return facts?.id === id && (reason === undefined || facts.reason === reason)
}

describe('a heartbeat thread that dies is named in the log and followed by another', () => {
  const deaths: [harm: Harm, why: RegExp][] = [
    ['throw', /^sabotaged$/],
    ['reject', /^sabotaged$/],
    ['exhaust', /memory/],
    ['exit', /^it exited with code 0$/],
  ]
  test.for(deaths)(
    'by %s; the session goes on, and so does the job that runs',
    async ([harm, why], { url, hf, query }) => {
      const sabotage = await makeSabotage()
      const worker = await startMember({ url, settings, env: sabotage.env })
      const { id } = await hf.submit(kinds.hold, null)
      await worker.runs(id)
      await sabotage.harm(harm)
      const isDeath = ({ log, reason }: Line) => /^the heartbeat thread died/.test(`${log}`) && why.test(`${reason}`)
      await worker.heard('the log names what happened', isDeath, 60_000)
      const [dead] = await query<{ at: Date }>('select now() as at')
      await until(async () => {
        const [session] = await query<{ heartbeat_at: Date }>(
          'select heartbeat_at from holdfast.session where id = $1 and ended_at is null',
          [worker.session],
        )
        return session && session.heartbeat_at > (dead as { at: Date }).at
      }, 'another thread beats for the same session')
      worker.order({ open: 'all' })
      const { output } = await hf.handle(id, kinds.hold).result({ timeout: 15_000 })
      expect(output).toMatchObject({ by: worker.pid })
      expect(await hf.get(id)).toMatchObject({ state: 'succeeded', attempt: 1 })
      const next = await hf.submit(kinds.hold, null)
      await worker.runs(next.id)
    },
  )
})

test('a program that is given as text works like one in a file', async ({ url }) => {
  const program = `
    import { connect, defineJob } from 'holdfast'
    const greet = defineJob('greet', { run: () => 'hello' })
    const hf = await connect({ url: process.env.DATABASE, jobs: [greet], logLevel: 'warn' })
    await hf.work()
    console.log((await (await hf.submit(greet, null)).result()).output)
    await hf.close()`
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: { ...process.env, DATABASE: url },
    timeout: 60_000,
  })
  expect({ stdout, stderr }).toEqual({ stdout: 'hello\n', stderr: '' })
})

test('a heartbeat thread that takes long to start is waited for', async ({ url, hf }) => {
  const slowStart = `import { isMainThread } from 'node:worker_threads'
    if (!isMainThread) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 9_000)`
  const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(slowStart)}` }
  const worker = await startMember({ url, settings: { ...quick, lostAfterMs: 2_000 }, env })
  const { id } = await hf.submit(kinds.hold, null)
  await worker.runs(id)
  expect(worker.lines.filter(({ log }) => /heartbeat thread died/.test(`${log}`))).toEqual([])
})

test('a heartbeat thread that hangs is replaced, and the worker goes on under a session', async ({
  url,
  hf,
  query,
}) => {
  const sabotage = await makeSabotage()
  const short = { ...settings, heartbeatMs: 100, lostAfterMs: 3_000, leaseMs: 60_000, abortMarginMs: 300 }
  const worker = await startMember({ url, settings: short, env: sabotage.env })
  const { id } = await hf.submit(kinds.hold, null)
  await worker.runs(id)
  await sabotage.harm('hang')
  // the lock falls with the thread, so its handlers are stopped first
  await worker.heard('its handler is aborted', ({ aborted }) => isAbort(aborted, id, 'lease_lost'), 60_000)
  await worker.heard('the log names it', ({ reason }) => /^it was silent for/.test(`${reason}`))
  await worker.runs(id, 2)
  worker.order({ open: 'all' })
  await hf.handle(id, kinds.hold).result({ timeout: 15_000 })
  expect(await query('select from holdfast.session where ended_at is null')).toHaveLength(1)
})

test('a worker whose heartbeat thread keeps dying ends together with its reaper, and says why', async ({
  url,
  hf,
  query,
}) => {
  const sabotage = await makeSabotage()
  const worker = await startMember({ url, settings, env: sabotage.env })
  const { id } = await hf.submit(kinds.hold, null)
  await worker.runs(id)
  const leads = () =>
    query('select from holdfast.leader where lease_until > now() and holder like $1', [`%:${worker.pid}:%`])
  await until(async () => (await leads()).length === 1, 'the process leads')
  await sabotage.harm('throw', 'always')
  expect(await worker.heard('the worker fails', ({ failed }) => failed !== undefined, 60_000)).toEqual({
    failed: 'worker_failed',
    message: expect.stringMatching(/heartbeat thread died \d times within a minute.*sabotaged/),
  })
  await worker.heard('its handler is aborted', ({ aborted }) => isAbort(aborted, id))
  await until(async () => (await leads()).length === 0, 'it leads no more')
  // its process lives on, and whoever asks to lead after it is let in
  await hf.reap()
  await until(async () => (await query('select from holdfast.leader where lease_until > now()')).length === 1)
  expect(await leads()).toHaveLength(0)
  expect(worker.lines).toContainEqual(
    expect.objectContaining({ level: 'error', log: expect.stringContaining('the worker failed') }),
  )
  const { id: next } = await hf.submit(kinds.hold, null)
  await until(async () => (await hf.get(id))?.state === 'queued', 'its job is given back')
  expect(await hf.get(next)).toMatchObject({ state: 'queued', attempt: 0 })
})

test('a worker process whose heartbeat thread keeps dying exits, and its supervisor replaces it', async ({
  url,
  hf,
}) => {
  const sabotage = await makeSabotage()
  const module = await moduleOf(`
    import { defineJob } from ${JSON.stringify(library)}
    export const nod = defineJob('nod', { run: () => process.pid })`)
  const work = run(['work', module, '--processes', '1', '--url', url], { env: sabotage.env })
  const [, pid] = await work.says(/Worker process (\d+) is ready/)
  await sabotage.harm('throw', 'always')
  await work.says(new RegExp(`Worker process ${pid} ended with code 1; restarting in`))
  await sabotage.relent()
  const { output } = await (await hf.submit(defineJob('nod', { run: () => 0 }), null)).result({ timeout: 20_000 })
  expect(output).not.toBe(Number(pid))
})

test('a worker that lost its session says that it is alive, although the heartbeat thread that knew of it died', async ({
  url,
  hf,
  query,
  pool,
}) => {
  const sabotage = await makeSabotage()
  const wire = await makeWire(url)
  const short = { ...swift, heartbeatMs: 300, logLevel: 'info' } as const
  const worker = await startMember({ url: wire.url, settings: short, env: sabotage.env })
  await startMember({ url, role: 'reap', settings: swift })
  const { id } = await hf.submit(kinds.hold, null)
  await worker.runs(id)
  const [first] = await query<{ session_id: string }>('select session_id from holdfast.lease')
  wire.stall()
  await until(async () => (await hf.get(id))?.crashes === 1, 'the job counts a crash')
  const stranger = await pool.connect()
  await stranger.query('begin')
  await stranger.query('select from holdfast.session where id = $1 for update', [first?.session_id])
  wire.reconnect()
  await until(
    async () =>
      (await query('select from holdfast.session where pid = $1 and ended_at is null', [worker.pid])).length > 0,
    'it has another session',
  )
  await sabotage.harm('exit')
  await worker.heard('its thread died', ({ log }) => /^the heartbeat thread died/.test(`${log}`), 60_000)
  await stranger.query('rollback')
  stranger.release()
  await until(async () => (await hf.get(id))?.crashes === 0, 'the crash is taken back', 20_000)
  worker.order({ open: 'all' })
  expect(await hf.handle(id, kinds.hold).result({ timeout: 15_000 })).toMatchObject({ state: 'succeeded' })
})
