import type { Holdfast } from 'holdfast'
import { type Member, startMember, swift } from './crash/member.ts'
import { expect, type Fixtures, test, until } from './fixtures.ts'
import { queuedCrowd } from './places.ts'

const many = 20_000
const patienceMs = 120_000

/** Waits until the operation has changed more than so many jobs. */
function beyond(hf: Holdfast, id: string, count: number) {
  return until(async () => (await hf.bulk.get(id)).done > count, `more than ${count} are done`, patienceMs)
}

function finished(hf: Holdfast, id: string) {
  return until(
    async () => {
      const bulk = await hf.bulk.get(id)
      return bulk.state === 'finished' && bulk
    },
    'the operation is finished',
    patienceMs,
  )
}

/** How many jobs have how many events of a type with this operation. */
function timesTold(query: Fixtures['query'], type: string, bulk: string) {
  return query<{ jobs: string; times: string }>(
    `select count(*) as jobs, times
    from (
      select count(*) as times from holdfast.event_log where type = $1 and data ->> 'bulk' = $2 group by job_id
    ) as told
    group by times`,
    [type, bulk],
  )
}

const queued = (count: number) => queuedCrowd({ count, runAt: `now() + interval '1 h'` })

test('a bulk operation whose process was killed with -9 goes on elsewhere, and changes every job once', async ({
  url,
  hf,
  query,
}) => {
  await query(queued(many))
  const { id } = await hf.bulk.start({ operation: 'cancel', filter: { kind: 'sample' } })
  for (const edge of [1_000, 6_000, 12_000]) {
    const member = await startMember({ url, role: 'reap', settings: swift })
    await beyond(hf, id, edge)
    member.kill('SIGKILL')
    await member.exited
    expect(await hf.bulk.get(id)).toMatchObject({ state: 'running' })
  }
  await startMember({ url, role: 'reap', settings: swift })
  expect(await finished(hf, id)).toMatchObject({ done: many, skipped: 0 })
  expect(await timesTold(query, 'job.cancelled', id)).toEqual([{ jobs: String(many), times: '1' }])
  expect(await query('select from holdfast.ready')).toEqual([])
  expect((await hf.audit()).violations).toEqual([])
}, 180_000)

test('two processes carry on two operations over the same jobs, and each job is changed once by each', async ({
  url,
  hf,
  query,
}) => {
  await query(queued(4_000))
  const filter = { kind: 'sample' }
  const first = await hf.bulk.start({ operation: 'priority', priority: 1, filter })
  const second = await hf.bulk.start({ operation: 'reschedule', delayMs: 7_200_000, filter })
  const start = () => startMember({ url, role: 'reap', settings: swift })
  const members: Member[] = await Promise.all([start(), start()])
  // a job that the other operation holds at that moment is tried again
  for (const [{ id }, type] of [
    [first, 'job.reprioritized'],
    [second, 'job.rescheduled'],
  ] as const) {
    expect(await finished(hf, id)).toMatchObject({ done: 4_000, skipped: 0 })
    expect(await timesTold(query, type, id)).toEqual([{ jobs: '4000', times: '1' }])
  }
  await Promise.all(members.map((member) => member.stop()))
}, 120_000)

test('a process that lost its operation changes nothing more, because its term is over', async ({
  open,
  hf,
  query,
}) => {
  await query(queued(400))
  const { id } = await hf.bulk.start({ operation: 'cancel', filter: { kind: 'sample' }, rate: 40 })
  const slow = await open()
  const reaping = await slow.reap()
  await beyond(hf, id, 0)
  // as if another process had taken it over
  await query(`update holdfast.bulk set term = term + 1, holder = 'another', lease_until = now() + interval '1 min'`)
  const { done } = await hf.bulk.get(id)
  await reaping.stop()
  expect((await hf.bulk.get(id)).done).toBe(done)
  expect(await query(`select from holdfast.outcome`)).toHaveLength(done)
})

test('a bulk operation goes on although the clock of the database was set back while a process held it', async ({
  open,
  hf,
  query,
}) => {
  await query(queued(10))
  const { id } = await hf.bulk.start({ operation: 'cancel', filter: { kind: 'sample' } })
  await query(
    `update holdfast.bulk set holder = 'dead', lease_until = now() + interval '3 h', next_at = now() + interval '3 h'`,
  )
  await (await open()).reap()
  expect(await finished(hf, id)).toMatchObject({ done: 10, skipped: 0 })
})
