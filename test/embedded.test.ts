import { readdir, readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { findEmbedded, startEmbedded } from '#holdfast/embedded/embedded'
import {
  eventually,
  newFolder,
  nothingRunsIn,
  processesOf,
  query,
  runningOwner,
  spawnOwner,
  stopLater,
} from './embedded/given.ts'

test('the first start makes a database from nothing, and the next finds its data again', async () => {
  const dir = join(await newFolder(), 'made', 'when missing')
  const first = stopLater(await startEmbedded({ dir }))
  await query(first.url, 'create table kept as select 42 as answer')
  await first.stop()
  const second = stopLater(await startEmbedded({ dir }))
  expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }])
  expect(second.dir).toBe(first.dir)
})

test('the server takes loopback connections with a password, and no others', async () => {
  const dir = await newFolder()
  const { url, dir: home } = stopLater(await startEmbedded({ dir, durable: false }))
  const [settings] = await query(
    url,
    `select current_setting('listen_addresses') as addresses, current_setting('unix_socket_directories') as sockets,
       current_setting('server_encoding') as encoding, current_database() as database`,
  )
  expect(settings).toEqual({ addresses: '127.0.0.1', sockets: '', encoding: 'UTF8', database: 'holdfast' })
  expect((await stat(join(home, 'password'))).mode & 0o777).toBe(0o600)
  await expect(query(url.replace(/:\w+@/, ':wrong@'), 'select 1')).rejects.toThrow(/password/)
  expect(await readFile(join(home, 'postgres.log'), 'utf8')).toContain('password authentication failed')
})

test('settings replace the defaults, but not those that the supervisor depends on', async () => {
  const dir = await newFolder()
  const settings = { max_connections: '20', shared_buffers: '16MB' }
  const { url } = stopLater(await startEmbedded({ dir, durable: false, settings }))
  expect(await query(url, 'show max_connections')).toEqual([{ max_connections: '20' }])
  expect(await query(url, 'show shared_buffers')).toEqual([{ shared_buffers: '16MB' }])
  expect(await query(url, 'show random_page_cost')).toEqual([{ random_page_cost: '1.1' }])
  const wrong = startEmbedded({ dir: await newFolder(), settings: { listen_addresses: '*' } })
  await expect(wrong).rejects.toMatchObject({ code: 'option_invalid' })
})

test('servers in two folders run side by side', async () => {
  const dirs = [await newFolder(), await newFolder()]
  const both = await Promise.all(dirs.map((dir) => startEmbedded({ dir, durable: false }).then(stopLater)))
  const places = await Promise.all(both.map(({ url }) => query(url, 'show data_directory')))
  expect(places).toEqual(both.map(({ dir }) => [{ data_directory: join(dir, 'pg') }]))
})

test('stop may be called twice and at once, and resolves when nothing runs any more', async () => {
  const embedded = await startEmbedded({ dir: await newFolder(), durable: false })
  expect(await processesOf(embedded.dir)).not.toEqual([])
  await Promise.all([embedded.stop(), embedded.stop()])
  expect(await processesOf(embedded.dir)).toEqual([])
  await embedded.stop()
})

test('Ctrl-C in the terminal of an owner does not take its server away', async () => {
  const owner = await runningOwner(await newFolder())
  process.kill(-owner.pid, 'SIGINT') // as a terminal does: to the whole group
  await eventually(() => owner.lines.some((line) => line.signal), 'the owner sees the signal')
  expect(await query(owner.url, 'select 1 as one')).toEqual([{ one: 1 }])
  owner.child.stdin?.write('stop\n')
  await owner.exited
  expect(await processesOf(owner.dir)).toEqual([])
})

test('a program that forgets to stop its server ends nevertheless, and the server with it', async () => {
  const owner = await runningOwner(await newFolder(), { manner: 'forgetful' })
  expect(await owner.exited).toEqual([0, null])
  await nothingRunsIn(owner.dir)
})

test('another process finds the running server of a folder, and none after it has stopped', async () => {
  const dir = await newFolder()
  const owner = await runningOwner(dir)
  expect(await findEmbedded(dir)).toBe(owner.url)
  await owner.kill('SIGKILL')
  expect(await findEmbedded(dir)).toBeUndefined()
  expect(await findEmbedded(join(dir, 'missing'))).toBeUndefined()
})

test('a port that is taken at the last moment is replaced by another', async () => {
  const dir = await newFolder()
  const starting = startEmbedded({ dir, durable: false }).then(stopLater)
  const stolen = await stealPort(dir)
  const { url } = await starting
  expect(new URL(url).port).not.toBe(String(stolen))
  expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
})

// The keeper needs a moment to start the server, in which the port of its command line is still free.
async function stealPort(dir: string): Promise<number> {
  for (;;) {
    const ports = (await processesOf(dir)).map(({ command }) => Number(/"port=(\d+)"/.exec(command)?.[1]))
    const port = ports.find((each) => each > 0)
    if (!port) {
      await turn()
      continue
    }
    const server = createServer()
    const isMine = await new Promise((resolve) => {
      server.once('error', () => resolve(false)).listen({ host: '127.0.0.1', port }, () => resolve(true))
    })
    if (isMine) {
      stopLater({ stop: async () => void server.close() })
      return port
    }
  }
}

test('of many starts on one folder exactly one wins, and the others name it', async () => {
  const dir = await newFolder()
  const owners = Array.from({ length: 4 }, () => spawnOwner(dir))
  const outcomes = await Promise.all(owners.map(({ outcome }) => outcome))
  const winner = owners.find((_, index) => outcomes[index]?.ready)
  const losers = outcomes.flatMap(({ failed }) => failed ?? [])
  expect(losers.map(({ code }) => code)).toEqual(Array(3).fill('data_folder_in_use'))
  for (const { message } of losers) expect(message).toContain(`process ${winner?.pid}`)
  for (const { message } of losers) expect(message).toContain(dir)
})

test('a second start in the same process is refused as well, and does not disturb the first', async () => {
  const dir = await newFolder()
  const { url } = stopLater(await startEmbedded({ dir, durable: false }))
  await expect(startEmbedded({ dir })).rejects.toMatchObject({ code: 'data_folder_in_use' })
  expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('after its owner was killed, many starts at once still have one winner', async () => {
  const dir = await newFolder()
  const dead = await runningOwner(dir)
  await dead.kill('SIGKILL')
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => spawnOwner(dir).outcome))
  expect(outcomes.filter(({ ready }) => ready)).toHaveLength(1)
  expect((await readdir(dead.dir)).filter((name) => name.startsWith('lock.'))).toHaveLength(1)
})
