import { ask, call, callEach, runOnTerminal } from './cli/command.ts'
import { expect, test, until } from './fixtures.ts'
import { queuedCrowd } from './places.ts'

interface BulkAnswer {
  id: string
  state: string
  done: number
  skipped: number
}

test('bulk previews with --dry-run, carries out, and shows who asked for it and why', async ({ open, url, given }) => {
  const hf = await open()
  const env = { HOLDFAST_URL: url }
  const jobs = [await given.queued({ kind: 'import' }), await given.queued({ kind: 'import' })]
  const [dry, refused, nothing] = await callEach(
    [
      ['bulk', 'cancel', '--kind', 'import', '--dry-run'],
      ['bulk', 'cancel'],
      ['bulk', 'redo', '--kind', 'import'],
    ],
    { env },
  )
  expect(dry?.stdout).toContain(jobs[0]?.id)
  expect(dry?.stdout).toMatch(/2 jobs would be cancelled\.\nNothing was changed\./)
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('The filter names no jobs') })
  expect(nothing).toMatchObject({ code: 1, stderr: expect.stringContaining('No job matches') })
  for (const { id } of jobs) expect(await hf.state(id)).toBe('queued')
  await hf.reap()
  const done = await ask<BulkAnswer>(['bulk', 'cancel', '--kind', 'import', '--reason', 'wrong file'], { env })
  expect(done).toMatchObject({ state: 'finished', done: 2, skipped: 0, reason: 'wrong file' })
  const [list, show, stop] = await callEach(
    [
      ['bulk', 'list'],
      ['bulk', 'show', done.id.slice(-8)],
      ['bulk', 'stop', done.id],
    ],
    { env },
  )
  expect(list?.stdout).toMatch(new RegExp(`${done.id} +cancel +finished +2/2 +0 .*kind import`))
  expect(show?.stdout).toMatch(/reason +wrong file/)
  expect(show?.stdout).toMatch(/asked +\S+ by \S+@\S+/)
  expect(stop).toMatchObject({ code: 1, stderr: expect.stringContaining('has finished') })
})

test('bulk shows a bar on a terminal, and Ctrl-C leaves the operation running', async ({ open, url, query }) => {
  const hf = await open()
  await query(queuedCrowd({ count: 200, runAt: `now() + interval '1 h'` }))
  await hf.reap()
  const line = ['bulk', 'priority', '1', '--kind', 'sample', '--rate', '20', '--url', url]
  const command = runOnTerminal(line, { columns: 100, rows: 20 })
  await command.says(/[█░]{24} +\d+% +[1-9]\d* of 200 given the new priority/)
  command.type('\u0003')
  await command.says(/priority of 200 jobs is under way\. Watch it with: holdfast bulk show/)
  const [bulk] = await hf.bulk.list()
  expect(bulk).toMatchObject({ state: 'running' })
  await hf.bulk.stop(String(bulk?.id))
})

test('failures, pause and resume say what happened, to whom and why', async ({ open, url, given }) => {
  const hf = await open()
  const env = { HOLDFAST_URL: url }
  const { id } = await given.finished('failed', { kind: 'extract' })
  const { stdout } = await call(['failures'], { env })
  expect(stdout).toMatch(new RegExp(`1 +extract +handler_failed .*${id} +It broke\\.`))
  expect(await ask(['failures', '--kind', 'other'], { env })).toEqual({ groups: [], count: 0, isAtLeast: false })
  expect(await ask(['pause', 'imports', '--reason', 'the API is down'], { env })).toMatchObject({ isPaused: true })
  const paused = {
    name: 'imports',
    isPaused: true,
    pauseReason: 'the API is down',
    pausedBy: expect.stringMatching(/@/),
  }
  await until(async () => (await hf.queues()).some(({ isPaused }) => isPaused), 'it is paused')
  expect(await hf.queues()).toMatchObject([paused])
  expect((await call(['resume', 'imports', '--reason', 'it is back'], { env })).stdout).toBe('imports  resumed\n')
  expect(await hf.queues()).toMatchObject([{ name: 'imports', isPaused: false, pauseReason: null }])
  const { events } = await hf.events.page({ types: 'queue.*' })
  expect(events.map(({ data }) => (data as { reason: string }).reason)).toEqual(['the API is down', 'it is back'])
})
