import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { duties, ownerDuties } from '#holdfast/reaper/duties'
import type { Orphan } from '#holdfast/reaper/duty'
import { orphans } from '#holdfast/reaper/orphans'
import { boundOf } from '#holdfast/reaper/recovery-bound'
import { claimJobs } from '#holdfast/worker/claim.sql'
import { rowsOf } from '#holdfast/worker/claim-batch'
import { closeSession } from '#holdfast/worker/session.sql'
import { memberKinds as kinds, startMember, swift } from './crash/member.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, test, until } from './fixtures.ts'

// Each class of the catalogue, made by a real crash. The names are the catalogue's own; the last test sees to that.

test('a job whose wake-up was lost is claimed by the next poll', async ({ url, query, hf }) => {
  // no session ever says that it wants to be woken, so nobody is
  await query(`
    create function holdfast.want_no_wake() returns trigger language plpgsql as $$
    begin new.wants_wake = false; return new; end $$;
    create trigger want_no_wake before update on holdfast.session for each row execute function holdfast.want_no_wake()`)
  await startMember({ url, settings: swift }).then((worker) => worker.order({ open: 'all' }))
  const submitter = await startMember({ url, role: 'client' })
  submitter.order({ submit: { kind: 'hold' } })
  const { submitted } = await submitter.heard('the job is submitted', (line) => line.submitted !== undefined)
  await submitter.kill('SIGKILL')
  await until(async () => (await hf.get(submitted as string))?.state === 'succeeded', 'a poll finds the job')
  expect(await hf.get(submitted as string)).toMatchObject({ attempt: 1, crashes: 0 })
})

test('a retry survives the death of the worker that scheduled it', async ({ url, hf }) => {
  const first = await startMember({ url, settings: swift })
  const { id } = await hf.submit(kinds.flaky, null)
  const waiting = await until(async () => {
    const job = await hf.get(id)
    return job?.failures === 1 && job
  }, 'the first attempt fails')
  await first.kill('SIGKILL')
  const second = await startMember({ url, settings: swift })
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the retry runs')
  const job = await hf.get(id)
  expect(job).toMatchObject({ attempt: 2, failures: 1, crashes: 0, outputs: { run: { by: second.pid } } })
  expect(job?.finishedAt?.getTime()).toBeGreaterThanOrEqual(waiting.runAt?.getTime() as number)
})

test('a job advanced by a worker that died goes on with its next stage', async ({ url, hf, query }) => {
  const first = await startMember({ url, settings: swift })
  const { id } = await hf.submit(kinds.staged, null)
  await first.heard('the first stage runs', (line) => line.started !== undefined)
  await hf.pauseQueue('default')
  first.order({ open: 'one' })
  await until(async () => (await hf.get(id))?.stage === 1, 'the first stage is committed')
  await first.kill('SIGKILL')
  const second = await startMember({ url, settings: swift })
  // a claim that the first had under way when it died may be carried out after it; not once its session is ended
  const living = 'select from holdfast.session where pid = $1 and ended_at is null'
  await until(async () => (await query(living, [first.pid])).length === 0, 'the session of the first is ended')
  await hf.resumeQueue('default')
  second.order({ open: 'all' })
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the next stage runs')
  expect(second.started()).toEqual([{ id, attempt: 2, stage: 'two' }])
  expect(await hf.get(id)).toMatchObject({
    crashes: 0,
    outputs: { one: { by: first.pid }, two: { by: second.pid, outputs: { one: { by: first.pid } } } },
  })
})

test('the jobs of a worker killed with -9 run again within the bound', async ({ url, open }) => {
  const hf = await open(swift)
  const first = await startMember({ url, settings: swift })
  const jobs = await hf.submitMany(
    kinds.hold,
    Array.from({ length: 6 }, () => ({ input: null })),
  )
  await until(() => first.started().length === jobs.length, 'all jobs run')
  const second = await startMember({ url, settings: swift })
  const killedAtMs = performance.now()
  await first.kill('SIGKILL')
  await until(() => second.started().length === jobs.length, 'all jobs run again')
  const tookMs = performance.now() - killedAtMs
  console.log(`recovered in ${Math.round(tookMs)} ms; the bound is ${boundOf(hf.config)} ms`)
  expect(tookMs).toBeLessThanOrEqual(boundOf(hf.config))
  second.order({ open: 'all' })
  for (const { id } of jobs) {
    await until(async () => (await hf.get(id))?.state === 'succeeded', 'the job ends')
    expect(await hf.get(id)).toMatchObject({ attempt: 2, crashes: 1, failures: 0 })
    expect(await hf.timeline(id)).toMatchObject([
      { type: 'job.submitted' },
      { type: 'job.revived', attempt: 1, data: { rung: 'lock gone', crashes: 1 } },
      { type: 'job.finished', attempt: 2 },
    ])
  }
})

test('a worker killed in the second stage costs only the second stage', async ({ url, hf }) => {
  const first = await startMember({ url, settings: swift })
  first.order({ open: 'one' })
  const { id } = await hf.submit(kinds.staged, null)
  await first.heard('the second stage runs', ({ started }) => (started as { stage?: string })?.stage === 'two')
  const second = await startMember({ url, settings: swift })
  second.order({ open: 'all' })
  await first.kill('SIGKILL')
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the second stage runs again')
  expect(second.started()).toEqual([{ id, attempt: 3, stage: 'two' }])
  expect(await hf.get(id)).toMatchObject({
    crashes: 1,
    outputs: { one: { by: first.pid, attempt: 1 }, two: { by: second.pid, attempt: 3 } },
  })
})

test('a running job whose session row is gone is revived', async ({ url, hf, query }) => {
  const worker = await startMember({ url, settings: swift })
  const { id } = await hf.submit(kinds.hold, null)
  await worker.heard('the job runs', (line) => line.started !== undefined)
  await query('delete from holdfast.session')
  await worker.heard('its handler is aborted', (line) => line.aborted !== undefined)
  expect(worker.lines.find((line) => line.aborted)).toMatchObject({ aborted: { attempt: 1, reason: 'lease_lost' } })
  await until(() => worker.started().length === 2, 'the job runs again')
  worker.order({ open: 'all' })
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the job ends')
  const revived = (await hf.timeline(id)).filter(({ type }) => type === 'job.revived')
  // whoever is first: the worker, told that its session is gone, gives the job back, or the reaper takes it
  for (const { data } of revived) expect(data).toMatchObject({ rung: 'session row gone' })
  expect((await hf.get(id))?.attempt).toBe(2)
})

test('a job that nobody gives back when its session row is gone is revived by the reaper', async ({
  given,
  store,
  query,
  hf,
}) => {
  const { id, sessionId } = await given.running()
  await query('delete from holdfast.session where id = $1', [sessionId])
  expect(moved(await sweepOf(store))).toEqual([{ id, orphan: 'session-row-gone', rung: 'session row gone' }])
  expect(await hf.get(id)).toMatchObject({ state: 'queued', crashes: 1 })
})

test('a claim that commits after its session was ended is taken back', async ({ given, store, hf }) => {
  const { id, queue } = await given.queued()
  const sessionId = await given.session()
  await store.transaction(async (inside) => {
    const lanes = [{ queue, kind: 'sample', priority: 2, stageCount: 1 }]
    const claimed = await inside.run(claimJobs, {
      sessionId,
      lanes,
      most: 1,
      mostBytes: 1e6,
      deadlinesMs: '{"sample":[60000]}',
    })
    expect(rowsOf(claimed, sessionId)).toMatchObject([{ id, attempt: 1 }])
    expect(await store.run(closeSession, { id: sessionId })).toHaveLength(1)
  })
  expect(await hf.get(id)).toMatchObject({ state: 'running', sessionId })
  expect(moved(await sweepOf(store))).toEqual([{ id, orphan: 'claimed-by-ended-session', rung: 'itself' }])
  expect(await hf.get(id)).toMatchObject({ state: 'queued', attempt: 1, crashes: 1 })
})

test('a handler that blocks its process past its deadline loses the job', async ({ url, hf, query }) => {
  const file = join(tmpdir(), `holdfast-${randomUUID()}`)
  onTestFinished(() => rm(file, { force: true }))
  const blocked = await startMember({ url, kinds: ['block'], settings: swift })
  const { id } = await hf.submit(kinds.block, { file })
  await blocked.heard('the handler blocks', (line) => line.started !== undefined)
  const reaper = await startMember({ url, role: 'reap', settings: swift })
  await reaper.heard('the job is revived', (line) => line.log === 'revived')
  expect(reaper.lines.find((line) => line.log === 'revived')).toMatchObject({
    job: id,
    orphan: 'hung-handler',
    rung: 'deadline passed',
  })
  // its process was busy all the time, and yet its session lives: the heartbeat has a thread of its own
  expect(await query('select ended_at from holdfast.session')).toEqual([{ ended_at: null }])
  await hf.pauseQueue('default')
  await writeFile(file, '')
  expect(existsSync(file)).toBe(true)
  await until(
    async () =>
      (await query(`select from holdfast.refusal where job_id = $1 and attempt = 1 and write = 'finish'`, [id]))
        .length > 0,
    'the late outcome is refused',
  )
  await hf.resumeQueue('default')
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the next attempt ends')
  expect(await hf.get(id)).toMatchObject({ attempt: 2, crashes: 1, failures: 0 })
})

test('a settle whose connection breaks is retried until it is answered', async ({ url, hf, pool, query }) => {
  await query(`
    create function holdfast.wait_for_test() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock(4711); return new; end $$;
    create trigger wait_for_test before insert on holdfast.outcome for each row execute function holdfast.wait_for_test()`)
  const holder = await pool.connect()
  await holder.query('select pg_advisory_lock(4711)')
  const worker = await startMember({ url, settings: swift })
  worker.order({ open: 'all' })
  const { id } = await hf.submit(kinds.hold, null)
  const settling = `select pid from pg_stat_activity where query like '/* job.finish */%' and wait_event_type = 'Lock'`
  for (let cut = 1; cut <= 2; cut++) {
    const [row] = await until(async () => {
      const rows = await query<{ pid: number }>(settling)
      return rows.length > 0 && rows
    }, 'the settle is under way')
    await query('select pg_terminate_backend($1)', [row?.pid])
    await until(
      async () => (await query('select from pg_stat_activity where pid = $1', [row?.pid])).length === 0,
      'the cut',
    )
  }
  await holder.query('select pg_advisory_unlock(4711)')
  holder.release()
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the settle is answered')
  expect(await hf.get(id)).toMatchObject({ attempt: 1, crashes: 0, outputs: { run: { by: worker.pid } } })
  expect((await hf.timeline(id)).map(({ type }) => type)).toEqual(['job.submitted', 'job.finished'])
})

test('a cancelled job stops executing although its wake-up was lost', async ({ url, hf }) => {
  // a worker behind a transaction pooler hears no NOTIFY at all
  const worker = await startMember({ url, settings: { ...swift, pooled: true } })
  const { id } = await hf.submit(kinds.hold, null)
  await worker.heard('the job runs', (line) => line.started !== undefined)
  await hf.cancel(id)
  expect(await worker.heard('its handler is aborted', (line) => line.aborted !== undefined)).toMatchObject({
    aborted: { id, reason: 'cancelled' },
  })
  expect(await hf.get(id)).toMatchObject({ state: 'cancelled', attempt: 1 })
})

test('a job of an unknown kind is left alone and reported', async ({ url, open }) => {
  const warned: [facts: object, message: string][] = []
  const log = {
    debug() {},
    info() {},
    error() {},
    warn: (facts: object, message: string) => void warned.push([facts, message]),
  }
  const hf = await open({ ...swift, log })
  const first = await startMember({ url, kinds: ['hold'], supervisor: 'the test', settings: swift })
  const { id } = await hf.submit(kinds.hold, null)
  await first.heard('the job runs', (line) => line.started !== undefined)
  await first.kill('SIGKILL')
  await hf.reclaim({ supervisor: 'the test', pid: first.pid })
  const stranger = await startMember({ url, kinds: ['flaky'], settings: swift })
  await stranger.heard('a worker leads that does not know the kind', (line) => line.log === 'became leader')
  expect(
    await stranger.heard(
      'the kind is reported',
      (line) => line.log === 'jobs are waiting for a kind that no running worker handles',
    ),
  ).toMatchObject({ queue: 'default', kind: 'hold' })
  expect(await stranger.metrics()).toMatch(/^holdfast_stranded_kinds 1$/m)
  expect(await hf.get(id)).toMatchObject({ state: 'queued', attempt: 1, crashes: 1 })
  const second = await startMember({ url, kinds: ['hold'], settings: swift })
  second.order({ open: 'all' })
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'a worker that knows the kind runs it')
})

test('every class of the catalogue names a test that exists', async () => {
  const folder = new URL('.', import.meta.url)
  const files = (await readdir(folder)).filter((name) => name.endsWith('.test.ts'))
  const sources = (await Promise.all(files.map((name) => readFile(new URL(name, folder), 'utf8')))).join('\n')
  const missing = Object.values(orphans).filter(({ test: name }) => !sources.includes(`test('${name}', `))
  expect(missing.map(({ test: name }) => name)).toEqual([])
})

test('every duty that the catalogue names is one that the reaper does', ({ store }) => {
  const owner = { read: async () => 'running', markFailed: async () => 'no' }
  const outside = ownerDuties({ store, owners: { any: owner }, timeoutMs: 1_000 })
  const known = [...duties, ...outside].map(({ name }) => name)
  for (const { duty } of Object.values(orphans)) if (duty !== null) expect(known).toContain(duty)
})

function moved({ revived }: { revived: Orphan[] }) {
  return revived.map(({ id, orphan, rung }) => ({ id, orphan, rung }))
}
