import { spawn } from 'node:child_process'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startEmbedded } from '#holdfast/embedded/embedded'
import {
  eventually,
  newFolder,
  nothingRunsIn,
  pidsOf,
  processesOf,
  query,
  runningOwner,
  spawnOwner,
  stopLater,
} from './embedded/given.ts'

test('kill -9 of the owner leaves nothing running', async () => {
  const owner = await runningOwner(await newFolder())
  await owner.kill('SIGKILL')
  await nothingRunsIn(owner.dir)
})

test('a start right after kill -9 of the owner succeeds and finds all that was committed', async () => {
  const dir = await newFolder()
  const owner = await runningOwner(dir)
  await query(owner.url, 'create table kept as select 42 as answer')
  await owner.kill('SIGKILL')
  const { url } = stopLater(await startEmbedded({ dir, durable: false }))
  expect(await query(url, 'select answer from kept')).toEqual([{ answer: 42 }])
})

test('after kill -9 of owner and keeper, the next start ends the server that they left and takes its data over', async () => {
  const dir = await newFolder()
  const owner = await runningOwner(dir)
  await query(owner.url, 'create table kept as select 42 as answer')
  const { keeper, postgres } = await pidsOf(owner.dir)
  process.kill(owner.pid, 'SIGSTOP') // so that it can't repair anything before it dies
  process.kill(keeper, 'SIGKILL')
  await owner.kill('SIGKILL')
  expect((await processesOf(owner.dir)).map(({ pid }) => pid)).toContain(postgres)
  const said: string[] = []
  const { url } = stopLater(await startEmbedded({ dir, durable: false, log: (line) => said.push(line) }))
  expect(await query(url, 'select answer from kept')).toEqual([{ answer: 42 }])
  expect(said.join()).toContain(`server process ${postgres}`)
})

test('after kill -9 of everything the next start recovers', async () => {
  const dir = await newFolder()
  const owner = await runningOwner(dir)
  await query(owner.url, 'create table kept as select 42 as answer')
  process.kill(owner.pid, 'SIGSTOP')
  for (const { pid } of await processesOf(owner.dir)) kill(pid)
  await owner.kill('SIGKILL')
  const { url } = stopLater(await startEmbedded({ dir, durable: false }))
  expect(await query(url, 'select answer from kept')).toEqual([{ answer: 42 }])
})

test('kill -9 of the server brings it back on the same URL, even while a query is at work', async () => {
  const said: string[] = []
  const embedded = stopLater(
    await startEmbedded({ dir: await newFolder(), durable: false, log: (line) => said.push(line) }),
  )
  await query(embedded.url, 'create table kept as select 42 as answer')
  const { postgres } = await pidsOf(embedded.dir)
  const busy = query(embedded.url, 'select count(*) from generate_series(1, 1e12)').catch((error: Error) => error)
  await eventually(() => query(embedded.url, busyQueries).then(([row]) => row?.count === '1'), 'the query is at work')
  kill(postgres)
  await eventually(() => query(embedded.url, 'select 1'), 'the server is back')
  expect(await query(embedded.url, 'select answer from kept')).toEqual([{ answer: 42 }])
  expect(await busy).toBeInstanceOf(Error)
  expect(said[0]).toContain(`process ${postgres}) exited unexpectedly`)
})

const busyQueries = `select count(*) from pg_stat_activity where query like '%1e12%' and pid <> pg_backend_pid()`

test('kill -9 of the keeper brings back a keeper and a server on the same URL, and nothing outlives stop', async () => {
  const embedded = stopLater(await startEmbedded({ dir: await newFolder(), durable: false }))
  const before = await pidsOf(embedded.dir)
  kill(before.keeper)
  await eventually(async () => (await pidsOf(embedded.dir)).keeper !== before.keeper, 'there is a new keeper')
  expect(await query(embedded.url, 'select 1 as one')).toEqual([{ one: 1 }])
  await embedded.stop()
  expect(await processesOf(embedded.dir)).toEqual([])
})

test('kill -9 of the keeper during a start fails the start, and leaves nothing running', async () => {
  const dir = await newFolder()
  const failure = startEmbedded({ dir, durable: false }).catch((error: unknown) => error)
  const keeper = await eventually(() => processesOf(dir).then((all) => all.find(isKeeper)), 'there is a keeper')
  kill(keeper.pid)
  expect(await failure).toMatchObject({ code: 'embedded_start_failed' })
  expect(await processesOf(dir)).toEqual([])
  stopLater(await startEmbedded({ dir, durable: false }))
})

function isKeeper({ command }: { command: string }): boolean {
  return command.includes('/keeper.js ')
}

test('a server that is killed again and again is restarted only so often per minute', async () => {
  const said: string[] = []
  const embedded = stopLater(
    await startEmbedded({ dir: await newFolder(), durable: false, log: (line) => said.push(line) }),
  )
  const isBack = () => said.filter((line) => line.includes('was restarted (process')).length
  for (let kills = 1; kills <= 5; kills += 1) {
    kill((await pidsOf(embedded.dir)).postgres)
    await eventually(() => isBack() === kills, `the server is back after kill ${kills}`)
  }
  kill((await pidsOf(embedded.dir)).postgres)
  await eventually(() => said.at(-1)?.includes('pausing'), 'the supervisor says that it waits')
  await embedded.stop()
  expect(isBack()).toBe(5)
})

test('a stale pid file that names a stranger neither stops the start nor harms the stranger', async () => {
  const dir = await newFolder()
  const first = stopLater(await startEmbedded({ dir, durable: false }))
  const pidFile = join(first.dir, 'pg', 'postmaster.pid')
  const [, ...rest] = (await readFile(pidFile, 'utf8')).split('\n')
  const { uid, gid } = await stat(join(first.dir, 'pg'))
  await first.stop()
  const stranger = spawn('sleep', ['1000'], { uid, gid, stdio: 'ignore' })
  onTestFinished(() => void stranger.kill('SIGKILL'))
  await writeFile(pidFile, [stranger.pid, ...rest].join('\n'))
  const { url } = stopLater(await startEmbedded({ dir, durable: false }))
  expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(stranger.exitCode ?? stranger.signalCode).toBeNull()
})

test('kill -9 in the middle of the first start leaves nothing that looks like a cluster', async () => {
  const dir = await newFolder()
  const owner = spawnOwner(dir)
  await eventually(async () => (await draftsIn(dir)).length > 0, 'the making of the cluster has begun')
  await owner.kill('SIGKILL')
  expect(await readdir(dir)).not.toContain('pg')
  const { url } = stopLater(await startEmbedded({ dir, durable: false }))
  expect(await query(url, 'select current_database() as name')).toEqual([{ name: 'holdfast' }])
  expect(await draftsIn(dir)).toEqual([])
})

async function draftsIn(dir: string): Promise<string[]> {
  return (await readdir(dir)).filter((name) => name.startsWith('pg.new-'))
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it ended with the one before it
  }
}
