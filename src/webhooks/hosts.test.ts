import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { makeHosts, parseSearch } from './hosts.ts'

async function hostsWith(text: string) {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-hosts-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, 'hosts')
  await writeFile(path, text)
  return { path, find: makeHosts(path) }
}

test('a name of the hosts file has its addresses, however it is written', async () => {
  const { find } = await hostsWith('# ours\n10.0.0.5\tdb.Internal db # the database\n\nfd00::5 db\nnonsense x\n')
  expect(await find('db')).toEqual(['10.0.0.5', 'fd00::5'])
  expect(await find('DB.internal.')).toEqual(['10.0.0.5'])
  expect(await find('x')).toEqual([])
  expect(await find('ours')).toEqual([])
})

test('a hosts file that changes is read again', async () => {
  const { path, find } = await hostsWith('10.0.0.5 db\n')
  expect(await find('db')).toEqual(['10.0.0.5'])
  await writeFile(path, '10.0.0.66 db other\n')
  expect(await find('db')).toEqual(['10.0.0.66'])
  await rm(path)
  expect(await find('db')).toEqual([])
})

test('localhost is this machine, also if no file says so', async () => {
  const { find } = await hostsWith('10.0.0.5 other.localhost\n')
  expect(await find('localhost')).toEqual(['127.0.0.1', '::1'])
  expect(await find('app.localhost')).toEqual(['127.0.0.1', '::1'])
  expect(await find('other.localhost')).toEqual(['10.0.0.5'])
  expect(await find('notlocalhost')).toEqual([])
})

test('search domains are those of the last line that names any', () => {
  expect(parseSearch('nameserver 10.0.0.1\nsearch a.test\n search b.test c.test\noptions ndots:5\n')).toEqual([
    'b.test',
    'c.test',
  ])
  expect(parseSearch('domain a.test')).toEqual(['a.test'])
  expect(parseSearch('search .\n')).toEqual([])
})
