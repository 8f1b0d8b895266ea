import { rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { defineJob } from 'holdfast'
import { vi } from 'vitest'
import { library, moduleOf, newFolder, type Running, removeFolder, run } from './cli/command.ts'
import { makeSabotage } from './crash/sabotage.ts'
import { expect, test, until } from './fixtures.ts'
import { makeWire } from './wire.ts'

vi.setConfig({ testTimeout: 90_000 })

const module = `
  import { defineJob } from ${JSON.stringify(library)}
  export const nod = defineJob('nod', { run: () => process.pid })
  export const block = defineJob('block', {
    timeoutMs: 1_000,
    run: ({ attempt }) => { while (attempt === 1); },
  })`
const named = (kind: string) => defineJob(kind, { run: () => 0 })
const swift = ['--processes', '1', '--health-port', '0', '--health-host', '127.0.0.1', '--statement-timeout-ms', '1000']

interface Answer {
  status: number
  isAlive?: boolean
  isReady?: boolean
  code?: string | null
  reasons?: string[]
  loops?: { loop: string; quietMs: number; limitMs: number }[]
}

async function probe(command: Running, path: '/livez' | '/readyz'): Promise<Answer> {
  const [, url] = await command.says(/Health checks at (\S+)\/livez/)
  const answer = await fetch(`${url}${path}`)
  return { status: answer.status, ...((await answer.json()) as object) }
}

async function untilProbe(command: Running, path: '/livez' | '/readyz', status: number): Promise<Answer> {
  return until(
    async () => {
      const answer = await probe(command, path)
      return answer.status === status ? answer : null
    },
    `${path} answers ${status}`,
    30_000,
  )
}

test('work is alive and ready while its processes turn; a frozen one makes /livez say which, and is replaced', async ({
  url,
}) => {
  const work = run(['work', await moduleOf(module), '--url', url, '--liveness-ms', '5000', ...swift])
  const [, pid] = await work.says(/Worker process (\d+) is ready/)
  await untilProbe(work, '/readyz', 200)
  const well = await probe(work, '/livez')
  expect(well).toMatchObject({ status: 200, isAlive: true, reasons: [] })
  await until(async () => {
    const { loops = [] } = await probe(work, '/livez')
    const expected = ['event loop', 'claim loop', 'watch loop', 'heartbeat thread', 'sweep loop', 'leader loop']
    return expected.every((one) => loops.some(({ loop }) => loop === `${one} of worker process ${pid}`))
  }, 'every loop is watched')
  process.kill(Number(pid), 'SIGSTOP')
  const { reasons } = await untilProbe(work, '/livez', 503)
  expect(reasons?.[0]).toMatch(
    new RegExp(`^The event loop of worker process ${pid} has not run for \\d+ ms; the limit is 5000 ms\\.$`),
  )
  await work.says(new RegExp(`Worker process ${pid} has not responded for .*; killing it\\.`))
  await work.says(new RegExp(`Worker process ${pid} was killed by SIGKILL; restarting in`))
  await untilProbe(work, '/livez', 200)
  await untilProbe(work, '/readyz', 200)
})

test('a worker process that a handler blocks for longer than its time-out is replaced', async ({ url, hf }) => {
  const work = run([
    'work',
    await moduleOf(module),
    '--url',
    url,
    '--liveness-ms',
    '1500',
    '--timeout-grace-ms',
    '500',
    ...swift,
  ])
  const [, pid] = await work.says(/Worker process (\d+) is ready/)
  await hf.submit(named('block'), null)
  await work.says(new RegExp(`Worker process ${pid} has not responded for .*; killing it\\.`))
  const next = await hf.submit(named('nod'), null)
  expect(await next.result({ timeout: 30_000 })).toMatchObject({ state: 'succeeded' })
})

test('a heartbeat thread that is dead makes /livez fail until another one beats', async ({ url }) => {
  const sabotage = await makeSabotage()
  const work = run(['work', await moduleOf(module), '--url', url, '--liveness-ms', '1500', ...swift], {
    env: sabotage.env,
  })
  await work.says(/Worker process (\d+) is ready/)
  await untilProbe(work, '/livez', 200)
  await sabotage.harm('hang')
  const { reasons } = await untilProbe(work, '/livez', 503)
  expect(reasons?.join(' ')).toMatch(/heartbeat thread of worker process \d+ has not run/)
  await untilProbe(work, '/livez', 200)
})

test('a reaper is alive but not ready while the database does not answer', async ({ url }) => {
  const wire = await makeWire(url)
  const reap = run(['reap', '--url', wire.url, '--liveness-ms', '500', ...swift.slice(2)])
  expect(await untilProbe(reap, '/readyz', 200)).toMatchObject({ isReady: true, code: null })
  wire.stall()
  expect(await untilProbe(reap, '/readyz', 503)).toMatchObject({ isReady: false, code: 'database_unreachable' })
  const stalledAtMs = performance.now()
  // longer than the limit: each of its duties waits in vain, and each wait is a sign of life
  await until(async () => {
    expect(await probe(reap, '/livez')).toMatchObject({ status: 200, isAlive: true })
    return performance.now() - stalledAtMs > 13_000
  }, 'it stays alive')
  wire.reconnect()
  await untilProbe(reap, '/readyz', 200)
})

test('the health file is rewritten only while the process is alive, and goes when it stops', async ({ url }) => {
  const folder = await newFolder()
  const file = join(folder, 'alive')
  const work = run([
    'work',
    await moduleOf(module),
    '--url',
    url,
    '--liveness-ms',
    '2000',
    '--health-file',
    file,
    ...swift,
  ])
  const [, pid] = await work.says(/Worker process (\d+) is ready/)
  const writtenAtMs = async () => (await stat(file).catch(() => null))?.mtimeMs ?? 0
  const first = await until(async () => (await writtenAtMs()) || null, 'the file is written')
  await until(async () => (await writtenAtMs()) > first, 'it is written again')
  process.kill(Number(pid), 'SIGSTOP')
  await untilProbe(work, '/livez', 503)
  const last = await writtenAtMs()
  await until(async () => {
    const { status } = await probe(work, '/livez')
    if (status === 503) expect(await writtenAtMs()).toBe(last)
    return status === 200
  }, 'the frozen process is replaced')
  await until(async () => (await writtenAtMs()) > last, 'it is written again')
  work.signal('SIGTERM')
  expect(await work.exited).toBe(0)
  expect(await writtenAtMs()).toBe(0)
  await removeFolder(folder)
})

test('a replacement that never gets ready is killed and replaced in turn', async ({ url, hf }) => {
  const folder = await newFolder()
  const door = join(folder, 'door')
  const waiting = `
    import { existsSync } from 'node:fs'
    while (existsSync(${JSON.stringify(door)})) await new Promise((resolve) => setTimeout(resolve, 50))
    ${module}`
  const work = run(['work', await moduleOf(waiting), '--url', url, '--liveness-ms', '1500', ...swift])
  const [, first] = await work.says(/Worker process (\d+) is ready/)
  await writeFile(door, '')
  process.kill(Number(first), 'SIGKILL')
  const [, second] = await work.says(/Worker process (\d+) is still not ready after .*; killing it\./)
  expect(second).not.toBe(first)
  await work.says(new RegExp(`Worker process ${second} was killed by SIGKILL; restarting in`))
  await rm(door)
  expect(await (await hf.submit(named('nod'), null)).result({ timeout: 60_000 })).toMatchObject({ state: 'succeeded' })
  await removeFolder(folder)
})

test('a process whose start fails exits, although its module keeps something open', async ({ url }) => {
  const work = run([
    'work',
    await moduleOf(`setInterval(() => {}, 1_000)\n${module}\nexport const twin = defineJob('nod', { run: () => 0 })`),
    '--url',
    url,
    ...swift,
  ])
  expect(await work.exited).not.toBe(0)
})

test('a process that never gets ready keeps nobody from supervising the others', async ({ url, hf }) => {
  const folder = await newFolder()
  const door = join(folder, 'door')
  await writeFile(door, '')
  // one process gets past the door, whichever comes first
  const waiting = `
    import { existsSync, mkdirSync } from 'node:fs'
    const isFirst = (() => { try { return mkdirSync(${JSON.stringify(join(folder, 'first'))}) === undefined } catch { return false } })()
    while (!isFirst && existsSync(${JSON.stringify(door)})) await new Promise((resolve) => setTimeout(resolve, 50))
    ${module}`
  const work = run([
    'work',
    await moduleOf(waiting),
    '--url',
    url,
    '--liveness-ms',
    '1500',
    '--processes',
    '2',
    ...swift.slice(2),
  ])
  const [, first] = await work.says(/Worker process (\d+) is ready/)
  const [, second] = await work.says(/Worker process (\d+) is still not ready after .*; killing it\./)
  expect(second).not.toBe(first)
  process.kill(Number(first), 'SIGKILL')
  await work.says(new RegExp(`Worker process ${first} was killed by SIGKILL; restarting in`))
  await rm(door)
  expect(await (await hf.submit(named('nod'), null)).result({ timeout: 60_000 })).toMatchObject({ state: 'succeeded' })
  await removeFolder(folder)
})
