import { defineJob } from 'holdfast'
import { currentLeader } from '#holdfast/leader/leader.sql'
import { memberKinds as kinds, startMember, swift } from './crash/member.ts'
import { expect, gate, test, until } from './fixtures.ts'

test('worker and reaper of a process stop together: nothing is cut, leases are let go, no connection is left', async ({
  open,
  query,
  store,
}) => {
  const begun = gate()
  const may = gate()
  const slow = defineJob('slow', {
    async run() {
      begun.open()
      await may.promise
      return 'whole'
    },
  })
  const hf = await open({ ...swift, jobs: [slow] })
  const working = await hf.work()
  const { id } = await hf.submit(slow, null)
  await begun.promise
  await until(async () => (await store.run(currentLeader, {}))[0]?.is_current, 'the process leads')
  const closing = hf.close()
  const other = await open()
  expect(await other.get(id)).toMatchObject({ state: 'running', sessionId: working.sessionId() })
  may.open()
  await closing
  expect(await other.get(id)).toMatchObject({ state: 'succeeded', attempt: 1, outputs: { run: 'whole' } })
  expect(await query('select ended_by from holdfast.session')).toEqual([{ ended_by: 'itself' }])
  expect(await store.run(currentLeader, {})).toMatchObject([{ term: 1, is_current: false }])
  await Promise.all([other.close(), store.close()])
  await until(
    async () =>
      (await query(`select from pg_stat_activity where datname = current_database() and application_name = 'holdfast'`))
        .length === 0,
    'no connection is left',
  )
})

test('a worker that drains a long job keeps its lease although a peer is idle: one run, no revival', async ({
  url,
  hf,
  query,
}) => {
  const settings = { ...swift, drainMs: 60_000 }
  const busy = await startMember({ url, settings })
  const { id } = await hf.submit(kinds.hold, null)
  await busy.heard('the job runs', (line) => line.started !== undefined)
  const idle = await startMember({ url, settings })
  const stopping = busy.stop()
  await busy.heard('it is asked to stop', (line) => line.stopping === true)
  const asked = (await query<{ at: Date }>('select now() as at'))[0]?.at
  await until(
    async () =>
      (
        await query(
          `select from holdfast.session where id = $1 and ended_at is null and heartbeat_at > $2::timestamptz + 2 * interval '${swift.leaseMs} ms'`,
          [busy.session, asked],
        )
      ).length > 0,
    'its lease is renewed long after it was asked to stop',
  )
  // it claims nothing more, while its peer does
  const next = await hf.submit(kinds.hold, { name: 'next' })
  await idle.heard('the peer runs the next job', ({ started }) => (started as { id?: string })?.id === next.id)
  busy.order({ open: 'all' })
  await stopping
  expect(await hf.get(id)).toMatchObject({
    state: 'succeeded',
    attempt: 1,
    crashes: 0,
    outputs: { run: { by: busy.pid } },
  })
  expect((await hf.timeline(id)).map(({ type }) => type)).toEqual(['job.submitted', 'job.finished'])
  expect(busy.started()).toHaveLength(1)
  expect(busy.lines.some((line) => line.aborted)).toBe(false)
  expect(await query('select ended_by from holdfast.session where id = $1', [busy.session])).toEqual([
    { ended_by: 'itself' },
  ])
})

test('a job that outlasts the drain is given back without a crash or a failure', async ({ url, hf }) => {
  const busy = await startMember({ url, settings: { ...swift, drainMs: 300 } })
  const { id } = await hf.submit(kinds.hold, null)
  await busy.heard('the job runs', (line) => line.started !== undefined)
  await busy.stop()
  expect(busy.lines.find((line) => line.aborted)).toMatchObject({ aborted: { id, reason: 'shutdown' } })
  expect(await hf.get(id)).toMatchObject({ state: 'queued', attempt: 1, crashes: 0, failures: 0, sessionId: null })
})

test('a reaper without a worker stops cleanly, and stopping twice is once', async ({ open, store }) => {
  const hf = await open(swift)
  const reaping = await hf.reap()
  await until(() => reaping.term(), 'it leads')
  await Promise.all([reaping.stop(), reaping.stop()])
  expect(reaping.term()).toBe(null)
  expect(await store.run(currentLeader, {})).toMatchObject([{ is_current: false }])
})
