import { memberKinds as kinds, type Member, startMember, swift } from './crash/member.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, test, until } from './fixtures.ts'
import { setCrashes } from './places.ts'

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
    await worker.exited
    await hf.reclaim({ supervisor: boss, pid: worker.pid })
  }
  for (const crashes of [1, 2]) {
    const worker = await startMember({ url, supervisor: boss, settings: swift })
    await until(() => worker.started().length === 5, 'the killer runs among its neighbours')
    await bury(worker)
    expect(await query('select distinct crashes, state from holdfast.job_status where finished_at is null')).toEqual([
      { crashes, state: 'queued' },
    ])
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

test('a suspect runs alone in its process', async ({ url, hf, query }) => {
  const suspects = await hf.submitMany(
    kinds.hold,
    Array.from({ length: 3 }, (_, n) => ({ input: { name: `gate ${n}` } })),
  )
  await setCrashes(query, 2)
  await hf.submitMany(
    kinds.hold,
    Array.from({ length: 3 }, () => ({ input: { name: 'fresh' } })),
  )
  const worker = await startMember({ url, settings: swift })
  worker.order({ open: 'fresh' })
  for (const [ended] of suspects.entries()) {
    const running = await until(
      async () => {
        const rows = await query<{ id: string; crashes: number }>(
          `select id, crashes from holdfast.job_status where finished_at is null and state = 'running'`,
        )
        return rows.some(({ crashes }) => crashes === 2) && rows
      },
      `suspect ${ended + 1} runs`,
    )
    expect(running).toHaveLength(1)
    const [now] = await query<{ at: Date }>('select now() as at')
    await until(
      async () =>
        (
          await query(`select from holdfast.session where heartbeat_at > $1::timestamptz + interval '700 ms'`, [
            now?.at,
          ])
        ).length > 0,
      'the worker has had the time to start another one',
    )
    expect(await query(`select id from holdfast.job_status where finished_at is null and state = 'running'`)).toEqual([
      { id: running[0]?.id },
    ])
    expect(worker.started().at(-1)).toMatchObject({ id: running[0]?.id })
    worker.order({ open: `gate ${suspects.findIndex(({ id }) => id === running[0]?.id)}` })
    await until(async () => (await hf.get(running[0]?.id as string))?.state === 'succeeded', 'it ends')
  }
  await until(
    async () => (await query('select from holdfast.job_status where finished_at is null')).length === 0,
    'the others end, too',
  )
})

test('a job with a crash budget of two is a suspect from its first crash on', async ({ given, query }) => {
  const { queue } = await given.queued({ crashBudget: 2 })
  await setCrashes(query, 1)
  const sessionId = await given.session()
  expect(await given.claim({ sessionId, queue })).toEqual([])
  expect(await given.claim({ sessionId, queue, isSuspect: true })).toHaveLength(1)
})

test('where no worker is ever empty, exactly one drains for a suspect, and claims it only when it is empty', {
  timeout: 60_000,
}, async ({ url, hf, query }) => {
  const settings = { ...swift, concurrency: 2 }
  const workers = await Promise.all([0, 1].map(() => startMember({ url, settings })))
  const submit = (name: string) => hf.submit(kinds.hold, { name })
  await Promise.all(['a', 'b', 'c', 'd'].map(submit))
  const started = () => workers.flatMap((worker) => worker.started())
  await until(() => started().length === 4, 'both workers are full')
  // nobody may prefetch it before it is a suspect
  const { id: suspect } = await hf.submit(kinds.hold, { name: 'suspect' }, { delayMs: 3_600_000 })
  await query('update holdfast.ready set crashes = 2, run_at = now() where job_id = $1', [suspect])
  const { id: next } = await submit('next')
  const drains = () => query<{ session_id: string }>('select session_id from holdfast.drain')
  const [drain] = await until(async () => {
    const rows = await drains()
    return rows.length > 0 && rows
  }, 'one drains')
  // either worker has a place now, and only the one that does not drain uses it
  const [first, second] = await Promise.all(
    workers.map(async (worker) =>
      (await hf.list({ state: 'running' })).filter((job) => job.sessionId === worker.session),
    ),
  )
  const nameOf = async (id: string | undefined) =>
    ((await hf.get(id as string)) as { input: { name: string } }).input.name
  for (const jobs of [first, second]) {
    const name = await nameOf(jobs?.[0]?.id)
    for (const worker of workers) worker.order({ open: name })
  }
  const other = workers.find(({ session }) => session !== Number(drain?.session_id)) as Member
  await until(() => other.started().some(({ id }) => id === next), 'the other worker goes on')
  expect(await hf.get(suspect)).toMatchObject({ state: 'queued', attempt: 0 })
  expect(await drains()).toEqual([drain])
  // the one that was let go may not be settled yet, and opening that one again would leave the other closed for ever
  const [left] = await until(async () => {
    const held = (await hf.list({ state: 'running' })).filter(
      ({ sessionId }) => sessionId === Number(drain?.session_id),
    )
    return held.length === 1 && held
  }, 'the draining worker has one job left')
  for (const worker of workers) worker.order({ open: await nameOf(left?.id) })
  await until(() => started().some(({ id }) => id === suspect), 'the suspect runs')
  expect(await hf.get(suspect)).toMatchObject({ state: 'running', attempt: 1, sessionId: Number(drain?.session_id) })
  expect(
    (await hf.list({ state: 'running' })).filter(({ sessionId }) => sessionId === Number(drain?.session_id)),
  ).toHaveLength(1)
  await until(async () => (await drains()).length === 0, 'nobody drains any more')
})

test('poison that keeps coming is quarantined, and no innocent job with it', { timeout: 120_000 }, async ({
  url,
  hf,
  query,
}) => {
  const settings = { ...swift, concurrency: 4 }
  let isOver = false
  /** A process that is replaced whenever it ends, as under a supervisor. */
  async function slot(): Promise<void> {
    while (!isOver) {
      const worker = await startMember({ url, supervisor: boss, kinds: ['poison', 'steady'], settings }).catch(
        () => null,
      )
      if (!worker) continue
      await Promise.race([worker.exited, until(() => isOver, 'the test ends', 110_000)])
      if (!isOver) await hf.reclaim({ supervisor: boss, pid: worker.pid })
    }
  }
  const innocents = await hf.submitMany(
    kinds.steady,
    Array.from({ length: 20 }, () => ({ input: { takesMs: 1_500 } })),
  )
  // some were among poison twice already: one more crash and they are quarantined
  await setCrashes(
    query,
    2,
    innocents.slice(0, 6).map(({ id }) => id),
  )
  await hf.submit(kinds.poison, { afterMs: 700 })
  const slots = [slot(), slot()]
  const quarantined = () =>
    query(`select kind from holdfast.job_status where finished_at is not null and state = 'failed'`)
  for (let poisons = 1; poisons <= 3; poisons++) {
    // the next one comes as soon as the last one has killed somebody, so that there is always one among the innocent
    await until(
      async () =>
        (await query(`select from holdfast.job_status where kind = 'poison' and crashes > 0`)).length === poisons,
      'it has killed',
      60_000,
    )
    if (poisons < 3) await hf.submit(kinds.poison, { afterMs: 700 })
  }
  await until(
    async () => (await query('select from holdfast.job_status where finished_at is null')).length === 0,
    'all have ended',
    90_000,
  )
  isOver = true
  await Promise.all(slots)
  expect(await quarantined()).toEqual(Array(3).fill({ kind: 'poison' }))
  for (const { id } of innocents) expect(await hf.get(id)).toMatchObject({ state: 'succeeded' })
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
    create trigger wait_for_test before insert on holdfast.outcome for each row execute function holdfast.wait_for_test()`)
  const holder = await pool.connect()
  await holder.query('select pg_advisory_lock(4711)')
  await hf.submitMany(kinds.hold, [{ input: null }, { input: null }])
  await setCrashes(query, 2)
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
