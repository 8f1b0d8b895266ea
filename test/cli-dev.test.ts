import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { findHome } from '#holdfast/embedded/home'
import { allGone, ask, call, newFolder, type Running, removeFolder, run } from './cli/command.ts'
import { until } from './until.ts'

// a first start lays a whole Postgres, and other tests run beside
vi.setConfig({ testTimeout: 60_000 })

interface Listed {
  jobs: { id: string; state: string; attempt: number; error: { message: string } | null }[]
}

/** All processes of a running `dev`: itself, its workers, the keeper of Postgres, and Postgres. */
async function pidsOf(dev: Running, folder: string): Promise<number[]> {
  const [, workers = ''] = await dev.says(/workers +\d+ processes? \(([\d, ]+)\)/)
  const home = await findHome(join(folder, '.holdfast'))
  const { keeper, postgres } = JSON.parse(await readFile(join(home?.path ?? '', 'embedded.json'), 'utf8'))
  return [dev.pid, ...workers.split(', ').map(Number), keeper, postgres]
}

function startDev(folder: string): Running {
  return run(['dev', '--processes', '2'], { cwd: folder })
}

async function finals(folder: string, count: number): Promise<Listed['jobs']> {
  return until(async () => {
    const { jobs } = await ask<Listed>(['jobs', '--state', 'succeeded,partial,failed,cancelled'], { cwd: folder })
    return jobs.length >= count && jobs
  }, `${count} final jobs`)
}

describe('dev in one folder, from its first start on', () => {
  let folder: string
  beforeAll(async () => {
    folder = await newFolder()
  })
  afterAll(() => removeFolder(folder))

  test('the first start runs the sample, answers other terminals, and Ctrl-C leaves nothing behind', async () => {
    const dev = startDev(folder)
    await dev.says(/Holdfast is running\. Press Ctrl-C to stop\./)
    await dev.says(/Submitted: delivery-4001\.txt, .*receipt-2002\.txt\./)
    expect(dev.output()).not.toMatch(/postgres:\/\/holdfast:[^*]/)
    await dev.says(/retried +fields 1\/2 +attempt 1 .*receipt-2002\.txt has no readable number, total/)
    const pids = await pidsOf(dev, folder)

    const jobs = await finals(folder, 6)
    expect(jobs.filter(({ state }) => state === 'succeeded')).toHaveLength(5)
    const [partial] = jobs.filter(({ state }) => state === 'partial')
    expect(partial?.error?.message).toBe('the total 59.05 was summed from the lines and does not appear in the text')
    await dev.says(/partial +places 2\/2 +attempt 2 .*does not appear in the text/)

    const submitted = await ask<{ result: { output: object } }>(
      ['submit', 'extract', '{"document":"receipt-2001.txt"}', '--wait', '10'],
      { cwd: folder },
    )
    expect(submitted.result).toMatchObject({ output: { total: { line: 9, column: 21, offset: 192 } } })
    const id = partial?.id ?? ''
    expect((await call(['redo', id], { cwd: folder })).stdout).toBe(`${id}  queued again\n`)
    await dev.says(new RegExp(`${id.slice(-8)} +redone `))
    const later = await ask<{ id: string }>(['submit', 'extract', '{"document":"a.txt"}', '--delay', '1h'], {
      cwd: folder,
    })
    expect((await call(['cancel', later.id.slice(-8)], { cwd: folder })).stdout).toBe(`${later.id}  cancelled\n`)
    await dev.says(new RegExp(`${later.id.slice(-8)} +cancelled`))
    expect((await call(['show', later.id], { cwd: folder })).stdout).toMatch(/^state +cancelled, /m)

    dev.signalGroup('SIGINT')
    expect(await dev.exited).toBe(0)
    expect(dev.output()).toMatch(/\nStopping: [\s\S]*\nStopped\. Your data is kept for the next start\.\n$/)
    await allGone(pids)
    expect((await call(['jobs'], { cwd: folder })).stderr).toMatch(/^error not_running: /)
  })

  test('the second start finds its data again, and a second SIGTERM changes nothing', async () => {
    const dev = startDev(folder)
    await dev.says(/6 documents were already submitted by an earlier start/)
    await dev.says(/Submitted: receipt-2002\.txt\./)
    const pids = await pidsOf(dev, folder)
    expect(await finals(folder, 9)).toHaveLength(9)
    const busy = await call(['dev'], { cwd: folder })
    expect(busy).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error data_folder_in_use: .* in use by process/),
    })
    dev.signal('SIGTERM')
    dev.signal('SIGTERM')
    expect(await dev.exited).toBe(0)
    await allGone(pids)
  })

  test('killed without warning, it leaves no process, and the next start works at once', async () => {
    const dev = startDev(folder)
    await dev.says(/Submitted: /)
    const pids = await pidsOf(dev, folder)
    await finals(folder, 10) // what runs when its worker is killed is the reaper's to move on, in its own time
    dev.signal('SIGKILL')
    const next = startDev(folder)
    await next.says(/Submitted: receipt-2002\.txt\./)
    await allGone(pids)
    await finals(folder, 11)
    next.signalGroup('SIGINT')
    expect(await next.exited).toBe(0)
  })

  test('the README kills a worker in the middle of a job, and another one goes on with it', async () => {
    const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8')
    const [, kind = '', input = ''] = /holdfast submit (\w+) '(.*)' +# takes a minute/.exec(readme) ?? []
    const dev = startDev(folder)
    await dev.says(/Submitted: /)
    const { id } = await ask<{ id: string }>(['submit', kind, input], { cwd: folder })
    const says = (command: string, pattern: RegExp) =>
      until(async () => (await call([command, id], { cwd: folder })).stdout.match(pattern), String(pattern))
    const running = await says('why', /^why +running: .* at stage places \(2 of 2\)[\s\S]* process (\d+),/m)
    process.kill(Number(running[1]), 'SIGKILL')
    await says('show', /revived /)
    await says('show', /^stage +places 2\/2, attempt 3, 1 lost their worker/m)
    dev.signalGroup('SIGINT')
    dev.signalGroup('SIGINT')
    await dev.exited
  })

  test('a reader that leaves early ends it cleanly', async () => {
    const dev = promisify(execFile)('/bin/sh', ['-c', `"${process.execPath}" "${main}" dev | head -n 1`], {
      cwd: folder,
    })
    expect(await dev).toMatchObject({ stdout: 'Starting the embedded Postgres in .holdfast …\n', stderr: '' })
    expect((await call(['jobs'], { cwd: folder })).stderr).toMatch(/^error not_running: /)
  })
})

const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))

test('two of them in two folders run side by side', async () => {
  const folders = await Promise.all([newFolder(), newFolder()])
  onTestFinished(async () => void (await Promise.all(folders.map(removeFolder))))
  const devs = folders.map((folder) => startDev(folder))
  for (const dev of devs) await dev.says(/Submitted: delivery-4001\.txt/)
  const [one, other] = await Promise.all(folders.map((folder) => finals(folder, 6)))
  expect(one?.map(({ id }) => id)).not.toContain(other?.[0]?.id)
  for (const dev of devs) dev.signalGroup('SIGINT')
  expect(await Promise.all(devs.map((dev) => dev.exited))).toEqual([0, 0])
})

test('Ctrl-C in the middle of the first start ends it cleanly, and the next start works', async () => {
  const folder = await newFolder()
  onTestFinished(() => removeFolder(folder))
  const dev = startDev(folder)
  await dev.says(/Starting the embedded Postgres/)
  dev.signalGroup('SIGINT')
  expect(await dev.exited).toBe(0)
  expect(dev.output()).toMatch(/Stopped\. Your data is kept/)
  const next = startDev(folder)
  await next.says(/Submitted: delivery-4001\.txt/)
  next.signalGroup('SIGINT')
  expect(await next.exited).toBe(0)
})

test('a module that cannot be used stops the start, and Postgres with it', async () => {
  const folder = await newFolder()
  onTestFinished(() => removeFolder(folder))
  const { code, stderr } = await call(['dev', 'none.mjs'], { cwd: folder })
  expect(stderr).toMatch(/^error module_invalid: Cannot use the module .*none\.mjs: the file does not exist\.\n$/)
  expect(code).toBe(1)
  expect((await call(['jobs'], { cwd: folder })).stderr).toMatch(/^error not_running: /)
})
