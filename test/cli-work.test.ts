import { defineJob, type Holdfast } from 'holdfast'
import { describe } from 'vitest'
import { allGone, call, library, moduleOf, type Running, run } from './cli/command.ts'
import { expect, test, until } from './fixtures.ts'

const nap = `
  import { defineJob } from ${JSON.stringify(library)}
  export const nap = defineJob('nap', {
    run: ({ input, signal }) => new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve('slept'), input.ms)
      if (input.isDeaf) return
      signal.addEventListener('abort', () => { clearTimeout(timer); reject(signal.reason) })
    }),
  })
  export const crash = defineJob('crash', { run: ({ attempt }) => (attempt === 1 ? process.exit(7) : 'survived') })`

// the handlers are in the module; here only the names matter
const named = (kind: string) => defineJob(kind, { run: () => null })

/** The worker processes so far, once there were so many. */
async function workersOf(work: Running, count: number): Promise<number[]> {
  const pids = () => [...work.output().matchAll(/Worker process (\d+) is ready/g)].map(([, pid]) => Number(pid))
  await until(() => pids().length >= count, `${count} worker processes`)
  return pids()
}

describe('a module that cannot be used', () => {
  const modules: [name: string, file: string, code: string, why: RegExp][] = [
    ['throws', 'jobs.mjs', 'throw new Error("no licence")', /it failed to load: no licence\./],
    ['does not parse', 'jobs.mjs', 'export const = 1', /it failed to load: /],
    ['exports no job', 'jobs.mjs', 'export const a = { kind: 1 }', /it exports no job; export the result of defineJob/],
    ['is TypeScript', 'jobs.ts', 'export const a: number = 1', /cannot load TypeScript; compile it .* tsx/],
    ['leaves', 'jobs.mjs', 'process.exit(3)', /A worker process ended with code 3 before it was ready\./],
  ]
  test.for(modules)('one that %s is refused by name', async ([, file, code, why], { url }) => {
    const module = await moduleOf(code, file)
    const result = await call(['work', module, '--processes', '1'], { env: { HOLDFAST_URL: url } })
    expect(result.stderr).toMatch(why)
    expect(result.stderr).toMatch(/^error (module_invalid: Cannot use the module .*jobs\.m?[jt]s: |not_running)/m)
    expect(result.code).toBe(1)
  })

  test('one that does not exist is refused by name', async ({ url }) => {
    const { code, stderr } = await call(['work', 'none.mjs', '--url', url, '--processes', '2'])
    expect(stderr).toMatch(/^error module_invalid: Cannot use the module .*none\.mjs: the file does not exist\.\n$/)
    expect(code).toBe(1)
  })
})

test('work runs in processes that carry the name of their supervisor, and drains on SIGTERM', async ({
  hf,
  url,
  query,
}) => {
  const work = run(['work', await moduleOf(nap), '--processes', '2', '--url', url])
  const pids = await workersOf(work, 2)
  const sessions = await query('select pid, supervisor from holdfast.session where ended_at is null order by pid')
  expect(sessions.map(({ pid }) => pid)).toEqual(pids.toSorted((a, b) => a - b))
  expect(new Set(sessions.map(({ supervisor }) => supervisor)).size).toBe(1)
  expect(sessions[0]?.supervisor).toMatch(/^[0-9a-f-]{36}$/)
  const { id } = await hf.submit(named('nap'), { ms: 600, isDeaf: true } as never)
  await until(async () => (await hf.get(id))?.state === 'running', 'a job that runs')
  work.signal('SIGTERM')
  expect(await work.exited).toBe(0)
  expect(work.output()).toMatch(/Stopping: .*\n[\s\S]*Stopped\.\n$/)
  expect(await hf.get(id)).toMatchObject({ state: 'succeeded', outputs: { run: 'slept' } })
  expect(await query('select from holdfast.session where ended_at is null')).toHaveLength(0)
  await allGone(pids)
})

test('a worker process that crashes is followed by another, and its job is taken back at once', async ({
  hf,
  url,
  query,
}) => {
  const work = run(['work', await moduleOf(nap), '--processes', '1', '--url', url])
  await workersOf(work, 1)
  const job = await hf.submit(named('crash'), {} as never)
  await work.says(/Worker process \d+ ended with code 7; restarting in 200 ms\./)
  expect(await job.result({ timeout: 10_000 })).toMatchObject({ state: 'succeeded', output: 'survived' })
  expect(await query("select from holdfast.event where type = 'job.revived'")).toHaveLength(1)
  const [, second] = await workersOf(work, 2)
  process.kill(second as number, 'SIGKILL')
  await work.says(/was killed by SIGKILL; restarting in 400 ms\./)
  await workersOf(work, 3)
  work.signalGroup('SIGINT')
  expect(await work.exited).toBe(0)
})

test('a worker process in which too many handlers ignore their signal is replaced by another', async ({ hf, url }) => {
  const settings = ['--max-unresponsive', '1', '--timeout-grace-ms', '200', '--drain-ms', '1000']
  const work = run(['work', await moduleOf(nap), '--processes', '1', '--url', url, ...settings])
  const [first] = await workersOf(work, 1)
  const { id } = await hf.submit(named('nap'), { ms: 600_000, isDeaf: true } as never)
  await until(async () => (await hf.get(id))?.state === 'running', 'a job that runs')
  await hf.cancel(id)
  const [, second] = await workersOf(work, 2)
  expect(second).not.toBe(first)
  expect(work.output()).toMatch(new RegExp(`Worker process ${first} asked to be replaced \\(code 75\\)`))
  const next = await hf.submit(named('nap'), { ms: 1 } as never)
  await until(async () => (await hf.get(next.id))?.state === 'succeeded', 'its successor works')
  await allGone([first as number])
  work.signal('SIGTERM')
  expect(await work.exited).toBe(0)
})

test('a second signal ends the worker processes at once', async ({ hf, url }) => {
  const work = run(['work', await moduleOf(nap), '--processes', '1', '--url', url])
  const pids = await workersOf(work, 1)
  const { id } = await hf.submit(named('nap'), { ms: 60_000, isDeaf: true } as never)
  await until(async () => (await hf.get(id))?.state === 'running', 'a job that runs')
  work.signal('SIGTERM')
  await work.says(/Stopping/)
  // one signal may arrive twice; a wish to hurry comes later
  const firstAtMs = performance.now()
  await until(() => performance.now() - firstAtMs > 600)
  work.signal('SIGTERM')
  expect(await work.exited).toBe(1)
  await allGone(pids)
})

test('worker processes end when their supervisor is killed, and give back what they run', async ({ hf, url }) => {
  const work = run(['work', await moduleOf(nap), '--processes', '1', '--url', url, '--drain-ms', '100'])
  const pids = await workersOf(work, 1)
  const { id } = await hf.submit(named('nap'), { ms: 60_000 } as never)
  await until(async () => (await hf.get(id))?.state === 'running', 'a job that runs')
  work.signal('SIGKILL')
  await work.exited
  await allGone(pids)
  expect(await hf.get(id)).toMatchObject({ state: 'queued', failures: 0, crashes: 0 })
})

const prints = `
  import { defineJob } from ${JSON.stringify(library)}
  export const prints = defineJob('prints', {
    backoff: { baseMs: 10 },
    run: async ({ attempt }) => {
      console.log('from the handler')
      process.stdout.write('from the handler\\n')
      console.error('from the handler')
      if (attempt === 1) throw new Error('an attempt that is logged')
      await new Promise((resolve) => setTimeout(resolve, 100))
      return process.pid
    },
  })`

/** Runs a few jobs that print. Answers who ran them, and expects that it cost no crash. */
async function printAll(hf: Holdfast, query: (text: string) => Promise<unknown[]>): Promise<unknown[]> {
  const pids: unknown[] = []
  for (let count = 0; count < 3; count++) {
    const job = await hf.submit(named('prints'), null as never)
    pids.push(((await job.result({ timeout: 20_000 })) as { output: unknown }).output)
  }
  expect(await query('select distinct crashes from holdfast.job_status')).toEqual([{ crashes: 0 }])
  expect(await query('select from holdfast.session')).toHaveLength(1)
  return pids
}

test('output that cannot be written, as on a full disk, ends no worker process and no job', async ({
  hf,
  url,
  query,
}) => {
  const work = run(['work', await moduleOf(prints), '--processes', '1', '--url', url], { isMute: true })
  const pids = await printAll(hf, query)
  expect(new Set(pids).size).toBe(1)
  work.signal('SIGTERM')
  expect(await work.exited).toBe(0)
})

test('a reader of the output that goes away ends no worker process and no job', async ({ hf, url, query }) => {
  const work = run(['work', await moduleOf(prints), '--processes', '1', '--url', url])
  await workersOf(work, 1)
  work.closeOutput()
  const pids = await printAll(hf, query)
  expect(new Set(pids).size).toBe(1)
  work.signal('SIGTERM')
  expect(await work.exited).toBe(0)
})
