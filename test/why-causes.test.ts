import { connect, defineJob } from 'holdfast'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { call, library, moduleOf, run } from './cli/command.ts'
import { expect, gate, test, until } from './fixtures.ts'

const greet = defineJob('greet', { run: () => null })

test('a quarantined job shows the signal or exit code of each process that it took down', {
  timeout: 60_000,
}, async ({ hf, url }) => {
  const module = await moduleOf(`
    import { defineJob } from ${JSON.stringify(library)}
    export const killer = defineJob('killer', {
      crashBudget: 3,
      run: ({ attempt }) => {
        if (attempt === 2) process.exit(7)
        process.kill(process.pid, attempt === 1 ? 'SIGKILL' : 'SIGABRT')
        return new Promise(() => {})
      },
    })`)
  const { id } = await hf.submit(defineJob('killer', { run: () => null }), null)
  run(['work', module, '--processes', '1', '--url', url])
  await until(async () => (await hf.get(id))?.state === 'failed', 'it is quarantined', 45_000)
  const { stdout } = await call(['why', id, '--url', url])
  expect(stdout).toMatch(/^why .*failed .*lost 3 workers.*\(last: child exited, killed by SIGABRT\)/m)
  expect(stdout).toMatch(/job\.revived, .*attempt 1, .*: child exited, killed by SIGKILL$/m)
  expect(stdout).toMatch(/job\.revived, .*attempt 2, .*: child exited, ended with code 7$/m)
  const ended = await hf.sessions({ ended: true })
  expect(ended.map(({ exit }) => exit)).toEqual(
    expect.arrayContaining(['killed by SIGABRT', 'ended with code 7', 'killed by SIGKILL']),
  )
})

test('why shows events with their reasons: what an attempt threw, and who cancelled and why', async ({ open, url }) => {
  const flaky = defineJob('flaky', {
    retries: 5,
    run: () => {
      throw new Error('the printer is on fire')
    },
  })
  const hf = await open({ jobs: [flaky], backoffBaseMs: 60_000 })
  await hf.work()
  const { id } = await hf.submit(flaky, null)
  await until(async () => (await hf.get(id))?.failures === 1, 'an attempt failed')
  const cancelled = await call(['cancel', id, '--reason', 'wrong printer', '--url', url])
  expect(cancelled.code).toBe(0)
  const { stdout } = await call(['why', id, '--url', url])
  expect(stdout).toMatch(
    /job\.retried, stage run \(1 of 1\), attempt 1, .* ago: the printer is on fire \(retry in .*\)$/m,
  )
  expect(stdout).toMatch(/job\.cancelled, .*: wrong printer \(by .+\)$/m)
  const shown = await call(['show', id, '--url', url])
  expect(shown.stdout).toMatch(/cancelled .*wrong printer \(by .+\)/)
})

test('why calls stages by their names, and says how many there are', async ({ open, url }) => {
  const hold = gate()
  const scan = defineJob('scan', {
    stages: [
      { name: 'pages', run: () => 1 },
      { name: 'fields', run: () => hold.promise },
    ],
  })
  const hf = await open({ jobs: [scan] })
  await hf.work()
  const { id } = await hf.submit(scan, null)
  await until(
    async () => (await hf.get(id))?.stage === 1 && (await hf.state(id)) === 'running',
    'the second stage runs',
  )
  const { verdict } = await hf.why(id)
  expect(verdict.sentence).toMatch(/^running: attempt 2 at stage fields \(2 of 2\), on session/)
  const { stdout } = await call(['why', id, '--url', url])
  expect(stdout).toMatch(/row +running, stage fields \(2 of 2\), attempt 2/)
  expect(stdout).toMatch(/outputs +pages \(1 of 2\) by attempt 1/)
  expect(stdout).toMatch(/job\.advanced, stage pages \(1 of 2\), attempt 1/)
  hold.open()
})

test('a paused queue says who paused it and why, until it is resumed', async ({ hf, given, url }) => {
  const { id, queue } = await given.queued()
  await hf.pauseQueue(queue, { by: 'ann', reason: 'moving the disks' })
  expect((await hf.why(id)).verdict.sentence).toMatch(/was paused .* ago by ann \(moving the disks\)\.$/)
  expect((await hf.why(id, { tenant: 'default' })).facts.queue).toEqual({ name: queue, pausedAt: expect.any(String) })
  expect((await call(['why', id, '--url', url])).stdout).toMatch(
    /queue +\S+, paused .* ago by ann \(moving the disks\),/,
  )
  expect((await call(['top', '--once', '--url', url])).stdout).toContain('paused by ann (moving the disks)')
  expect(await hf.queues()).toMatchObject([{ pausedBy: 'ann', pauseReason: 'moving the disks' }])
  await hf.resumeQueue(queue)
  expect(await hf.queues()).toMatchObject([{ isPaused: false, pausedBy: null, pauseReason: null }])
})

test('the last of thirty jobs that were submitted together has twenty-nine before it, the first none', async ({
  hf,
}) => {
  const jobs = await hf.submitMany(
    greet,
    Array.from({ length: 30 }, () => ({ input: null })),
  )
  const ahead = async (index: number) => (await hf.why(jobs[index]?.id as string)).facts.ahead
  expect([await ahead(0), await ahead(1), await ahead(29)]).toEqual([0, 1, 29])
})

test('beyond a thousand the jobs before another are not counted, and why says so', async ({ hf, url }) => {
  const jobs = await hf.submitMany(
    greet,
    Array.from({ length: 1_010 }, () => ({ input: null })),
  )
  const { stdout } = await call(['why', jobs.at(-1)?.id as string, '--url', url])
  expect(stdout).toContain('at least 1,000 ahead of it')
})

test('a group that an open transaction holds back is shown with that transaction, by top and among groups', async ({
  url,
  hf,
}) => {
  const handled: number[] = []
  await hf.events.subscribe('mailer', { from: 'beginning' }, (event) => void handled.push(event.seq))
  const importer = new pg.Client({ connectionString: url, application_name: 'nightly import' })
  importer.on('error', () => {})
  await importer.connect()
  await importer.query('begin')
  const { pid } = (await importer.query('select pg_current_xact_id(), pg_backend_pid() as pid')).rows[0]
  const other = await connect({ url, logLevel: 'silent', jobs: [greet] })
  onTestFinished(() => other.close())
  await other.submit(greet, null)
  const heldBy = await until(async () => (await hf.events.groups())[0]?.heldBy, 'the group is held back')
  expect(heldBy).toMatchObject({ pid, application: 'nightly import', prepared: null, forMs: expect.any(Number) })
  const words = `held back by a transaction \\(nightly import, pid ${pid}\\) that has been open for`
  expect((await call(['top', '--once', '--url', url])).stdout).toMatch(new RegExp(`^mailer .*${words}`, 'm'))
  expect((await call(['events', 'groups', '--url', url])).stdout).toMatch(new RegExp(`^mailer is ${words}`, 'm'))
  await importer.query('commit')
  await until(() => handled.length === 1, 'the event is read')
  await until(async () => (await hf.events.groups())[0]?.behind === 0, 'the cursor has moved')
  expect((await hf.events.groups())[0]?.heldBy).toBeNull()
  await importer.end()
})
