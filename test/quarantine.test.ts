import { memberKinds as kinds, type Member, startMember, swift } from './crash/member.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, test, until } from './fixtures.ts'

const boss = 'the boss'

test('a job that kills its workers is quarantined at its crash budget, and takes no innocent neighbour with it', {
  timeout: 60_000,
}, async ({ url, open, query }) => {
  const hf = await open(swift)
  const killer = await hf.submit(kinds.killer, null)
  const innocents = await hf.submitMany(
    kinds.hold,
    Array.from({ length: 4 }, () => ({ input: null })),
  )
  /** Waits until the killer has ended its worker, and gives its jobs back as a supervisor would. */
  async function bury(worker: Member): Promise<void> {
    worker.order({ open: 'kill' })
    await worker.ended
    await hf.reclaim({ supervisor: boss, pid: worker.pid })
  }
  for (const crashes of [1, 2]) {
    const worker = await startMember({ url, supervisor: boss, settings: swift })
    await until(() => worker.started().length === 5, 'the killer runs among its neighbours')
    await bury(worker)
    expect(await query('select distinct crashes, state from holdfast.live_job')).toEqual([{ crashes, state: 'queued' }])
  }
  const third = await startMember({ url, supervisor: boss, settings: swift })
  third.order({ open: 'all' })
  await bury(third)
  expect(await hf.get(killer.id)).toMatchObject({
    state: 'failed',
    crashes: 3,
    failures: 0,
    error: { code: 'quarantined', message: expect.stringContaining('lost 3 workers') },
  })
  expect((await hf.timeline(killer.id)).map(({ type }) => type)).toEqual([
    'job.submitted',
    'job.revived',
    'job.revived',
    'job.quarantined',
  ])
  const last = await startMember({ url, supervisor: boss, settings: swift })
  last.order({ open: 'all' })
  for (const { id } of innocents) {
    await until(async () => (await hf.get(id))?.state === 'succeeded', 'the innocent job ends')
    expect(await hf.get(id)).toMatchObject({ state: 'succeeded', crashes: 2, failures: 0 })
  }
})

test('jobs that have lost two workers run one at a time', async ({ url, hf, query }) => {
  const jobs = await hf.submitMany(
    kinds.hold,
    Array.from({ length: 3 }, (_, n) => ({ input: { name: `gate ${n}` } })),
  )
  await query('update holdfast.live_job set crashes = 2')
  const fresh = await hf.submit(kinds.hold, { name: 'fresh' })
  const worker = await startMember({ url, settings: swift })
  const isSuspect = ({ id }: { id: string }) => id !== fresh.id
  await until(() => worker.started().length === 2, 'one suspect and the fresh job run')
  for (let ended = 0; ended < jobs.length; ended++) {
    const suspects = await until(() => {
      const started = worker.started().filter(isSuspect)
      return started.length > ended && started
    }, 'the next suspect runs')
    expect(suspects).toHaveLength(ended + 1)
    expect(await query(`select id from holdfast.live_job where state = 'running' and crashes = 2`)).toHaveLength(1)
    const n = jobs.findIndex(({ id }) => id === suspects.at(-1)?.id)
    worker.order({ open: `gate ${n}` })
  }
  for (const { id } of jobs) await until(async () => (await hf.get(id))?.state === 'succeeded', 'the suspect ends')
})

test('a job is quarantined exactly at its crash budget, and not before', async ({ given, store, hf, query }) => {
  const { id, queue } = await given.queued({ crashBudget: 3 })
  for (const crashes of [1, 2, 3]) {
    const sessionId = await given.session()
    expect(await given.claim({ sessionId, queue, isSuspect: crashes === 3 })).toMatchObject([{ id, attempt: crashes }])
    await query(`update holdfast.session set ended_at = now(), ended_by = 'child exited' where id = $1`, [sessionId])
    const { revived, quarantined } = await sweepOf(store)
    expect({ revived: revived.length, quarantined: quarantined.length }).toEqual(
      crashes < 3 ? { revived: 1, quarantined: 0 } : { revived: 0, quarantined: 1 },
    )
  }
  expect(await hf.get(id)).toMatchObject({ state: 'failed', crashes: 3, attempt: 3, error: { code: 'quarantined' } })
  await hf.redo(id)
  expect(await hf.get(id)).toMatchObject({ state: 'queued', crashes: 0, attempt: 3 })
})

test('a crash costs no retry', async ({ url, hf }) => {
  // the kind `hold` allows no retry at all
  const first = await startMember({ url, settings: swift })
  const { id } = await hf.submit(kinds.hold, null)
  await first.heard('the job runs', (line) => line.started !== undefined)
  await first.kill('SIGKILL')
  const second = await startMember({ url, settings: swift })
  second.order({ open: 'all' })
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the job ends well')
  expect(await hf.get(id)).toMatchObject({ attempt: 2, crashes: 1, failures: 0 })
})

test('the next suspect waits until the last one is settled, so that neither pays for the other', async ({
  url,
  hf,
  pool,
  query,
}) => {
  await query(`
    create function holdfast.wait_for_test() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock(4711); return new; end $$;
    create trigger wait_for_test before insert on holdfast.finished_job for each row execute function holdfast.wait_for_test()`)
  const holder = await pool.connect()
  await holder.query('select pg_advisory_lock(4711)')
  await hf.submitMany(kinds.hold, [{ input: null }, { input: null }])
  await query('update holdfast.live_job set crashes = 2')
  const worker = await startMember({ url, settings: swift })
  worker.order({ open: 'all' })
  const settling = `select now() as at from pg_stat_activity where query like '/* job.finish */%' and wait_event_type = 'Lock'`
  const [first] = await until(async () => {
    const rows = await query<{ at: Date }>(settling)
    return rows.length > 0 && rows
  }, 'the first suspect is being settled')
  await until(
    async () =>
      (await query(`select from holdfast.session where heartbeat_at > $1::timestamptz + interval '2 s'`, [first?.at]))
        .length > 0,
    'the worker has had the time to look for another one',
  )
  expect(worker.started()).toHaveLength(1)
  await holder.query('select pg_advisory_unlock(4711)')
  holder.release()
  await until(() => worker.started().length === 2, 'the next suspect runs')
})
