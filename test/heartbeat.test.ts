import { defineJob } from 'holdfast'
import { describe, vi } from 'vitest'
import { library, moduleOf, run } from './cli/command.ts'
import { expect, quick, test, until } from './fixtures.ts'
import { type Harm, makeSabotage } from './processes/sabotage.ts'
import { startWorker } from './processes/worker.ts'

vi.setConfig({ testTimeout: 90_000 })

const patient = defineJob('patient', { run: () => {} })

/** Quick, and yet with time for a thread to start on a busy machine before a job could be lost. */
const settings = { ...quick, heartbeatMs: 200, lostAfterMs: 20_000, leaseMs: 60_000, logLevel: 'warn' } as const

describe('a heartbeat thread that dies is named in the log and followed by another', () => {
  const deaths: [harm: Harm, words: RegExp][] = [
    ['throw', /"reason":"sabotaged","msg":"the heartbeat thread died/],
    ['reject', /"reason":"sabotaged","msg":"the heartbeat thread died/],
    ['exhaust', /"reason":"[^"]*memory[^"]*","msg":"the heartbeat thread died/],
    ['exit', /"reason":"it exited with code 0","msg":"the heartbeat thread died/],
  ]
  test.for(deaths)(
    'by %s; the session goes on, and so does the job that runs',
    async ([harm, words], { url, hf, query }) => {
      const sabotage = await makeSabotage()
      const worker = await startWorker({ url, ...settings }, sabotage.env)
      const { id } = await hf.submit(patient, null)
      await worker.told(({ started }) => started === id)
      await sabotage.harm(harm)
      await until(() => words.test(worker.log()), 'the log names what happened')
      const [dead] = await query<{ at: Date }>('select now() as at')
      await until(async () => {
        const [session] = await query<{ heartbeat_at: Date }>(
          'select heartbeat_at from holdfast.session where id = $1 and ended_at is null',
          [worker.sessionId],
        )
        return session && session.heartbeat_at > (dead as { at: Date }).at
      }, 'another thread beats for the same session')
      worker.finish()
      expect(await hf.handle(id, patient).result({ timeout: 15_000 })).toMatchObject({ output: 'finished' })
      expect(await hf.get(id)).toMatchObject({ state: 'succeeded', attempt: 1 })
      const next = await hf.submit(patient, null)
      await worker.told(({ started }) => started === next.id)
    },
  )
})

test('a heartbeat thread that hangs is replaced, and the worker goes on under a session', async ({
  url,
  hf,
  query,
}) => {
  const sabotage = await makeSabotage()
  const short = { ...settings, heartbeatMs: 100, lostAfterMs: 3_000, leaseMs: 60_000, abortMarginMs: 300 }
  const worker = await startWorker({ url, ...short }, sabotage.env)
  const { id } = await hf.submit(patient, null)
  await worker.told(({ started }) => started === id)
  await sabotage.harm('hang')
  // the lock falls with the thread, so its handlers are stopped first
  await worker.told(({ aborted, reason }) => aborted === id && reason === 'lease_lost')
  await until(() => /"reason":"it was silent for/.test(worker.log()), 'the log names it')
  await worker.told(({ started, attempt }) => started === id && (attempt ?? 0) > 1)
  worker.finish()
  await hf.handle(id, patient).result({ timeout: 15_000 })
  expect(await query('select from holdfast.session where ended_at is null')).toHaveLength(1)
})

test('a worker whose heartbeat thread keeps dying ends together with its reaper, and says why', async ({
  url,
  hf,
  query,
}) => {
  const sabotage = await makeSabotage()
  const worker = await startWorker({ url, ...settings }, sabotage.env)
  const { id } = await hf.submit(patient, null)
  await worker.told(({ started }) => started === id)
  const leads = () =>
    query('select from holdfast.leader where lease_until > now() and holder like $1', [`%:${worker.pid}:%`])
  await until(async () => (await leads()).length === 1, 'the process leads')
  await sabotage.harm('throw', 'always')
  expect(await worker.told(({ failed }) => failed !== undefined)).toEqual({
    failed: 'worker_failed',
    message: expect.stringMatching(/heartbeat thread died \d times within a minute.*sabotaged/),
  })
  await worker.told(({ aborted }) => aborted === id)
  await until(async () => (await leads()).length === 0, 'it leads no more')
  // its process lives on, and whoever asks to lead after it is let in
  await hf.reap()
  await until(async () => (await query('select from holdfast.leader where lease_until > now()')).length === 1)
  expect(await leads()).toHaveLength(0)
  expect(worker.log()).toMatch(/"level":(50|60).*the worker has failed/)
  const { id: next } = await hf.submit(patient, null)
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
  const [, pid] = await work.says(/Worker process (\d+) works/)
  await sabotage.harm('throw', 'always')
  await work.says(new RegExp(`Worker process ${pid} ended with code 1; another one starts`))
  await sabotage.relent()
  const { output } = await (await hf.submit(defineJob('nod', { run: () => 0 }), null)).result({ timeout: 20_000 })
  expect(output).not.toBe(Number(pid))
})
