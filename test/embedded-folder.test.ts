import { spawnSync } from 'node:child_process'
import { chmod, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startEmbedded } from '#holdfast/embedded/embedded'
import { isRoot, newFolder, query, spawnOwner, stopLater, user } from './embedded/given.ts'

test('data of another major version is refused, with both versions', async () => {
  const dir = await newFolder()
  const { dir: home, stop } = stopLater(await startEmbedded({ dir, durable: false }))
  await stop()
  await writeFile(join(home, 'pg', 'PG_VERSION'), '12\n')
  const error = await startEmbedded({ dir }).catch((thrown) => thrown)
  expect(error).toMatchObject({ code: 'data_folder_version', details: { found: '12' } })
  expect(error.message).toMatch(/Postgres 12.*Postgres \d\d.*pg_dump/)
})

test('a folder that holds something else is refused, and left as it is', async () => {
  const dir = await newFolder()
  await writeFile(join(dir, 'thesis.txt'), 'mine')
  const error = await startEmbedded({ dir }).catch((thrown) => thrown)
  expect(error).toMatchObject({ code: 'data_folder_unusable' })
  expect(error.message).toContain('thesis.txt')
  expect(await readdir(dir)).toEqual(['thesis.txt'])
})

test('a mount point or a folder of a repository may be empty but for what belongs there', async () => {
  const dir = await newFolder()
  await mkdir(join(dir, 'lost+found'))
  await writeFile(join(dir, '.gitignore'), '*')
  const { url } = stopLater(await startEmbedded({ dir, durable: false }))
  expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('a file in the place of the folder is refused', async () => {
  const file = join(await newFolder(), 'file')
  await writeFile(file, '')
  await expect(startEmbedded({ dir: file })).rejects.toMatchObject({ code: 'data_folder_unusable' })
  await expect(startEmbedded({ dir: join(file, 'below') })).rejects.toMatchObject({ code: 'data_folder_unusable' })
})

test('a folder without the right to write is refused with what to do', async () => {
  const dir = await newFolder()
  await chmod(dir, 0o555)
  const { failed } = await spawnOwner(dir, { as: user }).outcome
  expect(failed?.code).toBe('data_folder_unusable')
  expect(failed?.message).toMatch(/is not writable.*another folder/)
})

test('a server that cannot start says why, and leaves its folder free', async () => {
  const dir = await newFolder()
  const wrong = startEmbedded({ dir, durable: false, settings: { shared_buffers: 'plenty' } })
  const error = await wrong.catch((thrown) => thrown)
  expect(error).toMatchObject({ code: 'embedded_start_failed' })
  expect(error.message).toContain('invalid value for parameter "shared_buffers": "plenty"')
  const { url } = stopLater(await startEmbedded({ dir, durable: false }))
  expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('a server that takes too long is given up, and leaves its folder free', async () => {
  const dir = await newFolder()
  const error = await startEmbedded({ dir, durable: false, startTimeoutMs: 1 }).catch((thrown) => thrown)
  expect(error).toMatchObject({ code: 'embedded_start_failed' })
  expect(error.message).toContain('not ready after 0.001 s')
  stopLater(await startEmbedded({ dir, durable: false }))
})

test('the log of the server is cut when it grows too long, and the part before is kept', async () => {
  const dir = await newFolder()
  const first = stopLater(await startEmbedded({ dir, durable: false }))
  await first.stop()
  const log = join(first.dir, 'postgres.log')
  await writeFile(log, 'x'.repeat(9 * 1024 * 1024))
  stopLater(await startEmbedded({ dir, durable: false }))
  expect((await stat(log)).size).toBeLessThan(100_000)
  expect((await stat(`${log}.1`)).size).toBeGreaterThan(9_000_000)
})

test('something else in the place of the cluster is refused', async () => {
  const dir = await newFolder()
  const first = stopLater(await startEmbedded({ dir, durable: false }))
  await first.stop()
  await rm(join(first.dir, 'pg', 'PG_VERSION'))
  await expect(startEmbedded({ dir })).rejects.toMatchObject({ code: 'data_folder_unusable' })
})

test('a password that was lost is replaced, and the data is still there', async () => {
  const dir = await newFolder()
  const first = stopLater(await startEmbedded({ dir, durable: false }))
  await query(first.url, 'create table kept as select 42 as answer')
  await first.stop()
  await rm(join(first.dir, 'password'))
  const second = stopLater(await startEmbedded({ dir, durable: false }))
  expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }])
})

if (isRoot && spawnSync('unshare', ['--mount', 'true']).status === 0) {
  test('a full disk is named, and leaves no half of a cluster', async () => {
    const dir = join(await newFolder(), 'small')
    await mkdir(dir)
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=12m,mode=755', 'tmpfs', dir]).status).toBe(0)
    onTestFinished(() => void spawnSync('umount', [dir]))
    const error = await startEmbedded({ dir, durable: false }).catch((thrown) => thrown)
    expect(error).toMatchObject({ code: 'data_folder_unusable' })
    expect(error.message).toMatch(/disk.*full/)
    expect((await readdir(dir)).filter((name) => name.startsWith('pg'))).toEqual([])
  })
}
