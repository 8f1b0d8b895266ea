import { setTimeout as sleep } from 'node:timers/promises'
import { defineJob, type Holdfast, type OpenRemote } from 'holdfast'
import type { Fence } from '#holdfast/job/id'
import { expect, test, until } from './fixtures.ts'
import { isHeldBack } from './hold.ts'
import { setCrashes } from './places.ts'

const extract = defineJob('extract', { run: () => {} })
const staged = defineJob('staged', {
  stages: [
    { name: 'read', run: () => 'text' },
    { name: 'refine', optional: true, run: () => 'better' },
  ],
})
const kinds = [{ name: 'extract' }]
const fencesOf = (all: { id: string; attempt: number }[]) =>
  all.map(({ id, attempt }) => ({ id, attempt }) as unknown as Fence)
const ok = <T extends { id: string; attempt: number }>({ id, attempt }: T, output: unknown = 'done') => ({
  id,
  attempt,
  outcome: 'succeeded' as const,
  output,
})

/** A session that holds one attempt. */
async function holding(hf: Holdfast, worker: Partial<OpenRemote> = {}) {
  const handle = await hf.submit(extract, { page: 1 } as never)
  const session = await hf.remote.open({ kinds, ...worker })
  const [attempt] = await hf.remote.claim(session.id)
  if (!attempt) throw new Error('Nothing was claimed.')
  return { handle, session, attempt }
}

test('a remote worker claims, reports and settles like any other', async ({ hf }) => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const handle = await hf.submit(extract, { page: 1 } as never, { traceparent })
  const session = await hf.remote.open({ kinds, host: 'gpu-1', pid: 7, leaseMs: 3_000 })
  expect(session).toMatchObject({ leaseMs: 3_000, heartbeatMs: 1_000, leaseUntil: expect.any(Date) })
  const claimed = await hf.remote.claim(session.id, { most: 10 })
  expect(claimed).toEqual([
    {
      id: handle.id,
      attempt: 1,
      kind: 'extract',
      queue: 'default',
      tenant: 'default',
      stage: 'run',
      input: { page: 1 },
      outputs: {},
      timeoutMs: 900_000,
      deadlineAt: expect.any(Date),
      failures: 0,
      submittedAt: expect.any(Date),
      traceparent,
    },
  ])
  const [mine] = fencesOf(claimed) as [Fence]
  const report = { ...mine, done: 1, total: 2, note: 'half', log: [{ message: 'at it', data: { page: 1 } }] }
  expect(await hf.remote.progress(session.id, [{ ...mine, done: 0 }, report])).toEqual(['written', 'written'])
  expect(await hf.remote.settle(session.id, [ok(mine, { text: 'hello' })])).toEqual(['settled'])
  expect(await hf.get(handle.id)).toMatchObject({
    state: 'succeeded',
    outputs: { run: { text: 'hello' } },
    progress: { done: 1, total: 2, note: 'half' },
  })
  const timeline = await hf.timeline(handle.id)
  expect(timeline.map(({ type }) => type)).toEqual(['job.submitted', 'job.log', 'job.finished'])
  await hf.remote.close(session.id)
  await expect(hf.remote.claim(session.id)).rejects.toMatchObject({ code: 'session_ended', status: 410 })
})

test('the server decides by the rules of the kind what follows from an outcome', async ({ hf }) => {
  const handle = await hf.submit(staged, null as never)
  const stages = [
    { name: 'read', retries: 1, backoff: { baseMs: 1 } },
    { name: 'refine', optional: true, retries: 0 },
  ]
  const { id } = await hf.remote.open({ kinds: [{ name: 'staged', stages }] })
  const next = async () => (await hf.remote.claim(id, { waitMs: 5_000 }))[0] as never as Fence & { stage: string }
  const failed = (fence: Fence, isPermanent = false) => ({
    ...fence,
    outcome: 'failed' as const,
    error: { message: 'It broke.', isPermanent },
  })
  const first = await next()
  await hf.remote.settle(id, [failed(first)])
  expect(await hf.get(handle.id)).toMatchObject({ state: 'queued', failures: 1 })
  const second = await next()
  expect(second).toMatchObject({ stage: 'read', failures: 1, attempt: 2 })
  await hf.remote.settle(id, [ok(second, 'text')])
  const third = await next()
  expect(third).toMatchObject({ stage: 'refine', outputs: { read: 'text' }, failures: 0 })
  await hf.remote.settle(id, [{ ...third, outcome: 'released' }])
  const fourth = await next()
  await hf.remote.settle(id, [failed(fourth)])
  expect(await hf.get(handle.id)).toMatchObject({ state: 'partial', outputs: { read: 'text' } })
  const other = await hf.submit(staged, null as never)
  await hf.remote.settle(id, [failed(await next(), true)])
  expect(await hf.get(other.id)).toMatchObject({ state: 'failed', error: { code: 'permanent', message: 'It broke.' } })
})

test('an output that cannot be stored fails the attempt with the reason', async ({ open }) => {
  const hf = await open({ maxOutputBytes: 100 })
  const { handle, session, attempt } = await holding(hf)
  expect(await hf.remote.settle(session.id, [ok(attempt, 'x'.repeat(200))])).toEqual(['settled'])
  expect(await hf.get(handle.id)).toMatchObject({ state: 'failed', error: { code: 'output_too_large' } })
  expect(await hf.remote.settle(session.id, [ok(attempt, 'x'.repeat(200))])).toEqual(['settled'])
})

test('an outcome that is sent again is answered the same, and another one is refused', async ({ hf, query }) => {
  const { handle, session, attempt } = await holding(hf)
  expect(await hf.remote.settle(session.id, [ok(attempt)])).toEqual(['settled'])
  expect(await hf.remote.settle(session.id, [ok(attempt)])).toEqual(['settled'])
  expect(await query('select from holdfast.refusal')).toEqual([])
  const failed = { ...attempt, outcome: 'failed' as const, error: { message: 'no' } }
  expect(await hf.remote.settle(session.id, [ok(attempt), failed])).toEqual(['settled', 'lease_lost'])
  expect((await hf.timeline(handle.id)).map(({ type }) => type)).toEqual(['job.submitted', 'job.finished'])
  expect(await query('select write, session_id::int from holdfast.refusal')).toEqual([
    { write: 'failed', session_id: session.id },
  ])
})

test('an attempt of a session that died is revived, and its late outcome is refused and recorded', async ({
  open,
  query,
}) => {
  const hf = await open({ sweepMs: 20, leaderRenewMs: 50, leaderLeaseMs: 400 })
  const { handle, session, attempt } = await holding(hf, { leaseMs: 500 })
  await hf.reap()
  const second = await hf.remote.open({ kinds })
  const [again] = await hf.remote.claim(second.id, { waitMs: 10_000 })
  expect(again).toMatchObject({ id: handle.id, attempt: 2 })
  expect(await hf.remote.settle(session.id, [ok(attempt, 'late')])).toEqual(['lease_lost'])
  expect(await hf.remote.progress(session.id, [{ ...attempt, done: 1 }])).toEqual(['lease_lost'])
  const held = fencesOf([attempt])
  await expect(hf.remote.beat(session.id, { held })).rejects.toMatchObject({ code: 'session_ended' })
  const writes = await query('select write from holdfast.refusal where session_id = $1 order by id', [session.id])
  expect(writes.map(({ write }) => write)).toEqual(['succeeded', 'progress', 'heartbeat'])
  expect(await hf.remote.settle(second.id, [ok(again as never)])).toEqual(['settled'])
  expect(await hf.get(handle.id)).toMatchObject({ state: 'succeeded', outputs: { run: 'done' }, attempt: 2 })
})

test('a heartbeat keeps the lease, and tells of cancelled and lost attempts', async ({ hf, query }) => {
  const { handle, session, attempt } = await holding(hf)
  const other = await holding(hf)
  const held = fencesOf([attempt])
  const first = await hf.remote.beat(session.id, { held })
  expect(first.lost).toEqual([])
  await hf.cancel(handle.id)
  const second = await hf.remote.beat(session.id, { held: [...held, ...fencesOf([other.attempt])] })
  expect(second.leaseUntil.getTime()).toBeGreaterThan(first.leaseUntil.getTime())
  expect(second.lost).toEqual([
    { id: handle.id, attempt: 1, reason: 'cancelled' },
    { id: other.handle.id, attempt: 1, reason: 'lease_lost' },
  ])
  const [row] = await query<{ locked_on: Date | null }>('select locked_on from holdfast.session where id = $1', [
    session.id,
  ])
  expect(row?.locked_on).toBeNull()
})

test('a session cannot write about the attempt of another, even with its fence', async ({ hf, query }) => {
  const { handle, session, attempt } = await holding(hf)
  const thief = await hf.remote.open({ kinds })
  expect(await hf.remote.settle(thief.id, [ok(attempt)])).toEqual(['lease_lost'])
  expect(await hf.remote.progress(thief.id, [{ ...attempt, done: 1 }])).toEqual(['lease_lost'])
  expect(await hf.remote.release(thief.id, fencesOf([attempt]))).toEqual(['lease_lost'])
  expect(await hf.get(handle.id)).toMatchObject({ state: 'running', attempt: 1 })
  expect(await query('select from holdfast.refusal where session_id = $1', [thief.id])).toHaveLength(3)
  expect(await hf.remote.settle(session.id, [ok(attempt)])).toEqual(['settled'])
})

test('a session of another owner is not found, nor is one of a worker of ours', async ({ hf, given }) => {
  const { id } = await hf.remote.open({ kinds, owner: 'key-1' })
  const own = { owner: 'key-1' }
  const others = { owner: 'key-2' }
  expect(await hf.remote.claim(id, {}, own)).toEqual([])
  const notFound = { code: 'session_not_found', status: 404 }
  await expect(hf.remote.claim(id, {}, others)).rejects.toMatchObject(notFound)
  await expect(hf.remote.beat(id, { held: [] }, others)).rejects.toMatchObject(notFound)
  await expect(hf.remote.settle(id, [], others)).rejects.toMatchObject(notFound)
  await expect(hf.remote.progress(id, [], others)).rejects.toMatchObject(notFound)
  await expect(hf.remote.close(id, others)).rejects.toMatchObject(notFound)
  await expect(hf.remote.claim(await given.session())).rejects.toMatchObject(notFound)
  await expect(hf.remote.claim(-1)).rejects.toMatchObject(notFound)
  await hf.remote.close(id, own)
})

test('a session of a tenant never gets the job of another, nor learns of it', async ({ hf, open, query }) => {
  await hf.submitMany(
    extract,
    ['acme', 'default', 'other'].map((tenant) => ({ input: null as never, tenant })),
  )
  const all = await hf.remote.open({ kinds: [{ name: 'extract', queue: 'default', crashBudget: 7 }] })
  const { id } = await hf.remote.open({ kinds: [{ name: 'extract', crashBudget: 2 }], tenant: 'acme' })
  const mine = await hf.remote.claim(id, { most: 500, waitMs: 100 })
  expect(mine.map(({ tenant }) => tenant)).toEqual(['acme'])
  const [suspect] = await query<{ id: string }>(
    `update holdfast.ready set crashes = 2 where tenant = 'other' returning job_id as id`,
  )
  // another server, for one looks for suspects only now and then
  expect(await (await open()).remote.claim(id, { most: 500 })).toEqual([])
  const theirs = await hf.remote.claim(all.id, { most: 500 })
  expect(theirs.map(({ tenant }) => tenant)).toEqual(['other'])
  expect(
    await hf.remote.settle(
      id,
      theirs.map((one) => ok(one)),
    ),
  ).toEqual(['lease_lost'])
  await hf.cancel(suspect?.id as string)
  const { lost } = await hf.remote.beat(id, { held: fencesOf(theirs) })
  expect(lost.map(({ reason }) => reason)).toEqual(['lease_lost'])
  expect(await query('select from holdfast.refusal')).toEqual([])
  // what all others submit by does not change with what one tenant says
  expect(await hf.kinds()).toMatchObject([
    { name: 'extract', tenant: null, crashBudget: 7 },
    { name: 'extract', tenant: 'acme', crashBudget: 2 },
  ])
  expect(await hf.kind('extract', { tenant: 'acme' })).toMatchObject({ crashBudget: 7 })
})

test('items of a fan-out are left to the workers that know how to run them', async ({ hf, query }) => {
  const { id } = await hf.submit(extract, null as never)
  await query('update holdfast.ready set is_part = true where job_id = $1', [id])
  const session = await hf.remote.open({ kinds })
  expect(await hf.remote.claim(session.id)).toEqual([])
})

test('a waiting claim is woken by a submit', async ({ open }) => {
  const hf = await open({ pollMs: 60_000 })
  const { id } = await hf.remote.open({ kinds })
  const claim = hf.remote.claim(id, { waitMs: 30_000 })
  await sleep(1_500) // past the first, quick looks
  const startedMs = performance.now()
  const handle = await hf.submit(extract, null as never)
  expect(await claim).toMatchObject([{ id: handle.id }])
  expect(performance.now() - startedMs).toBeLessThan(1_000)
})

test('of many who wait for the same, each is served, and nobody is given what another has', async ({ open }) => {
  const hf = await open({ pollMs: 60_000 })
  const sessions = await Promise.all(Array.from({ length: 30 }, () => hf.remote.open({ kinds })))
  const claims = sessions.map(({ id }) => hf.remote.claim(id, { waitMs: 30_000 }))
  const gone = new AbortController()
  const left = hf.remote.claim(sessions[0]?.id as number, { waitMs: 30_000, signal: gone.signal })
  gone.abort()
  const handles = await hf.submitMany(extract, Array(30).fill({ input: null as never }))
  const claimed = (await Promise.all(claims)).map(([attempt]) => attempt?.id)
  expect(await left).toEqual([])
  expect(claimed.toSorted()).toEqual(handles.map(({ id }) => id).toSorted())
})

test('a claim that commits just as its session is ended is revived, and its worker refused', async ({
  open,
  pool,
  query,
}) => {
  const hf = await open({ sweepMs: 20, leaderRenewMs: 50, leaderLeaseMs: 400 })
  await query(`
    create function held_back() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(77); return new; end $$;
    create trigger held_back before insert on holdfast.lease for each row when (new.session_id = 1) execute function held_back()`)
  const handle = await hf.submit(extract, null as never)
  const { id } = await hf.remote.open({ kinds })
  expect(id).toBe(1)
  const holder = await pool.connect()
  await holder.query('select pg_advisory_lock(77)')
  const claim = hf.remote.claim(id)
  await until(async () => (await isHeldBack(pool, 'job.claim_remote')) || undefined, 'the claim is held back')
  await query(`update holdfast.session set ended_at = now(), ended_by = 'test' where id = $1`, [id])
  await holder.query('select pg_advisory_unlock(77)')
  holder.release()
  const [attempt] = await claim
  expect(attempt).toMatchObject({ id: handle.id, attempt: 1 })
  await hf.reap()
  const heir = await hf.remote.open({ kinds })
  const [second] = await hf.remote.claim(heir.id, { waitMs: 10_000 })
  expect(second).toMatchObject({ id: handle.id, attempt: 2 })
  expect(await hf.remote.settle(id, [ok(attempt as never)])).toEqual(['lease_lost'])
  expect(await hf.remote.settle(heir.id, [ok(second as never)])).toEqual(['settled'])
})

test('a waiting claim ends with its session, its caller, its time and its server', async ({ hf, query }) => {
  const { id } = await hf.remote.open({ kinds })
  const isWaiting = (id: number) => async () =>
    (await query('select from holdfast.session where id = $1 and wants_wake', [id])).length === 1 || undefined
  const gone = new AbortController()
  const left = hf.remote.claim(id, { waitMs: 30_000, signal: gone.signal })
  await until(isWaiting(id))
  gone.abort()
  expect(await left).toEqual([])
  expect(await hf.remote.claim(id, { waitMs: 50 })).toEqual([])
  const ended = expect(hf.remote.claim(id, { waitMs: 30_000 })).rejects.toMatchObject({ code: 'session_ended' })
  await query(`update holdfast.session set ended_at = now(), ended_by = 'test' where id = $1`, [id])
  await ended
  const second = await hf.remote.open({ kinds })
  const stopped = hf.remote.claim(second.id, { waitMs: 30_000 })
  await until(isWaiting(second.id))
  await hf.close()
  expect(await stopped).toEqual([])
})

test('a claim that has only begun ends with its server', async ({ open }) => {
  const hf = await open()
  const { id } = await hf.remote.open({ kinds })
  const claim = hf.remote.claim(id, { waitMs: 30_000 })
  await hf.close()
  expect(await claim).toEqual([])
})

test('a session whose lease is out is given nothing until a heartbeat renews it', async ({ hf, query }) => {
  const handle = await hf.submit(extract, null as never)
  const { id } = await hf.remote.open({ kinds })
  await query(`update holdfast.session set lease_until = now() - interval '1 s'`)
  expect(await hf.remote.claim(id)).toEqual([])
  await setCrashes(query, 2)
  expect(await hf.remote.claim(id)).toEqual([])
  await hf.remote.beat(id, { held: [] })
  const claimed = await until(async () => (await hf.remote.claim(id))[0])
  expect(claimed).toMatchObject({ id: handle.id, attempt: 1 })
})

test('an earlier stage that returned nothing is null to the next, whatever it is called', async ({ hf }) => {
  await hf.submit(extract, null as never)
  const stages = [{ name: 'constructor' }, { name: 'last' }]
  const { id } = await hf.remote.open({ kinds: [{ name: 'extract', stages }] })
  const [first] = await hf.remote.claim(id)
  await hf.remote.settle(id, [{ ...(first as never as Fence), outcome: 'succeeded' }])
  expect(await hf.remote.claim(id)).toMatchObject([{ stage: 'last', outputs: { constructor: null } }])
})

test('a claim answers no more than a server can carry, and the rest stays in its queue', async ({ hf, query }) => {
  const large = 'x'.repeat(1_000_000)
  await Promise.all(Array.from({ length: 20 }, () => hf.submit(extract, large as never)))
  const { id } = await hf.remote.open({ kinds })
  const claimed = await hf.remote.claim(id, { most: 500 })
  expect(claimed.length).toBe(16)
  expect(
    await query(`select from holdfast.job_status where finished_at is null and state = 'queued' and attempt = 0`),
  ).toHaveLength(4)
  expect((await hf.remote.claim(id, { most: 500 })).length).toBe(4)
})

test('what is claimed for a caller who has gone meanwhile is given back at once', async ({ hf }) => {
  const handle = await hf.submit(extract, null as never)
  const { id } = await hf.remote.open({ kinds })
  expect(await hf.remote.claim(id, { signal: AbortSignal.abort() })).toEqual([])
  expect(await hf.get(handle.id)).toMatchObject({ state: 'queued', attempt: 1, crashes: 0, failures: 0 })
})

test('attempts whose claim was answered in vain are given back when heartbeats do not list them', async ({ hf }) => {
  const { handle, session, attempt } = await holding(hf, { leaseMs: 500 })
  // an answer may still be on its way
  await hf.remote.beat(session.id, { held: [] })
  expect(await hf.get(handle.id)).toMatchObject({ state: 'running' })
  await until(async () => {
    await hf.remote.beat(session.id, { held: [] })
    return (await hf.get(handle.id))?.state === 'queued' || undefined
  })
  expect(await hf.remote.claim(session.id)).toMatchObject([{ id: attempt.id, attempt: 2 }])
  const claimedAtMs = performance.now()
  await until(() => performance.now() - claimedAtMs > 600 || undefined, 'the lease is over')
  const { lost } = await hf.remote.beat(session.id, { held: fencesOf([{ id: attempt.id, attempt: 2 }]) })
  expect(lost).toEqual([])
})

test('a job that has lost several workers is all that a session holds', async ({ hf, open, query }) => {
  await hf.submitMany(extract, Array(3).fill({ input: null as never }))
  await setCrashes(query, 2)
  await hf.submit(extract, null as never)
  const { id } = await hf.remote.open({ kinds })
  // each server for itself looks for suspects only now and then
  const servers = await Promise.all([open(), open(), open()])
  const claims = await Promise.all(servers.map((server) => server.remote.claim(id, { most: 5 })))
  const [first, ...others] = claims.flat()
  expect(others).toEqual([])
  await hf.remote.settle(id, [ok(first as never)])
  expect(await hf.remote.claim(id, { most: 5, waitMs: 5_000 })).toHaveLength(1)
})

test('a session that is never empty drains for a suspect that nobody takes', async ({ open, query }) => {
  const hf = await open({ pollMs: 50 })
  await hf.submitMany(extract, Array(2).fill({ input: null as never }))
  const { id } = await hf.remote.open({ kinds })
  const [one] = await hf.remote.claim(id, { most: 1 })
  await query(`update holdfast.ready set crashes = 2, run_at = now() - interval '1 min'`)
  await hf.submit(extract, null as never)
  await until(async () => {
    await hf.remote.claim(id, { most: 1 }).then((more) => hf.remote.release(id, fencesOf(more)))
    return (await query('select from holdfast.drain')).length === 1
  }, 'the session drains')
  expect(await hf.remote.claim(id, { most: 5 })).toEqual([])
  await hf.remote.settle(id, [ok(one as never)])
  expect(await hf.remote.claim(id, { most: 5, waitMs: 5_000 })).toHaveLength(1)
  expect(
    await query('select crashes from holdfast.job_status where finished_at is null and session_id is not null'),
  ).toEqual([{ crashes: 2 }])
  expect(await query('select from holdfast.drain')).toEqual([])
})

test('any server serves any session', async ({ open }) => {
  const [one, two] = await Promise.all([open(), open()])
  const handle = await one.submit(extract, null as never)
  const { id } = await one.remote.open({ kinds })
  const [attempt] = await two.remote.claim(id)
  expect(await one.remote.beat(id, { held: fencesOf([attempt as never]) })).toMatchObject({ lost: [] })
  const both = await Promise.all([one, two].map((hf) => hf.remote.settle(id, [ok(attempt as never)])))
  expect(both.flat()).toEqual(['settled', 'settled'])
  expect((await one.timeline(handle.id)).map(({ type }) => type)).toEqual(['job.submitted', 'job.finished'])
  const more = await one.submitMany(extract, Array(20).fill({ input: null as never }))
  const claims = await Promise.all([one, two].map((hf) => hf.remote.claim(id, { most: 15 })))
  expect(new Set(claims.flat().map((claim) => claim.id)).size).toBe(claims.flat().length)
  await two.remote.close(id)
  expect(await Promise.all(more.map(async ({ id }) => (await one.get(id))?.state))).toEqual(Array(20).fill('queued'))
})

test('a session that is closed gives everything back at no cost', async ({ hf }) => {
  const { handle, session } = await holding(hf)
  const waiting = hf.remote.claim(session.id, { waitMs: 30_000 })
  await hf.remote.close(session.id)
  await waiting
  expect(await hf.get(handle.id)).toMatchObject({ state: 'queued', crashes: 0, failures: 0 })
  await hf.remote.close(session.id)
})

test('what a remote worker sends is checked before anything is done', async ({ hf }) => {
  const invalid = { code: 'option_invalid', status: 422 }
  const opens: OpenRemote[] = [
    { kinds: [] },
    { kinds: 'extract' as never },
    { kinds: [{ name: 'a b' }] },
    { kinds: [{ name: 'a' }, { name: 'a' }] },
    { kinds: [{ name: 'a', priority: 9 }] },
    { kinds: [{ name: 'a', stages: [] }] },
    { kinds: [{ name: 'a', stages: [{ name: 'x', retries: -1 }] }] },
    { kinds: [{ name: 'a', stages: [{ name: 'x', backoff: { factor: 0.5 } }] }] },
    { kinds, leaseMs: 1 },
    { kinds, pid: 1.5 },
    { kinds, concurrency: 0 },
    { kinds, host: 'x'.repeat(300) },
  ]
  for (const one of opens) await expect(hf.remote.open(one), JSON.stringify(one)).rejects.toMatchObject(invalid)
  const { session, attempt } = await holding(hf)
  const { id } = session
  const calls = [
    () => hf.remote.claim(id, { most: 501 }),
    () => hf.remote.claim(id, { waitMs: 60_001 }),
    () => hf.remote.beat(id, {} as never),
    () => hf.remote.settle(id, [{ id: 'x', attempt: 1, outcome: 'succeeded' }]),
    () => hf.remote.settle(id, [{ ...attempt, attempt: 0, outcome: 'succeeded' }]),
    () => hf.remote.settle(id, [{ ...attempt, outcome: 'toString' as never }]),
    () => hf.remote.settle(id, [{ ...attempt, outcome: 'failed' } as never]),
    () => hf.remote.settle(id, [{ ...attempt, outcome: 'failed', error: { message: 'x', code: 'mine' as never } }]),
    () => hf.remote.settle(id, Array(501).fill(ok(attempt))),
    () => hf.remote.progress(id, [{ ...attempt, done: -1 }]),
    () => hf.remote.progress(id, [{ ...attempt, note: 7 as never }]),
    () => hf.remote.progress(id, [{ ...attempt, log: [{}] as never }]),
  ]
  for (const call of calls) await expect(call(), String(call)).rejects.toMatchObject(invalid)
  expect(await hf.get(attempt.id)).toMatchObject({ state: 'running', progress: null })
  const odd = { ...attempt, done: 1, note: 'a\0b', log: [{ message: 'c\0\ud800', data: { n: Number.NaN } }] }
  expect(await hf.remote.progress(id, [odd])).toEqual(['written'])
  const failed = {
    ...attempt,
    outcome: 'failed' as const,
    error: { message: 'd\0\ud800'.repeat(2_000), isPermanent: true },
  }
  expect(await hf.remote.settle(id, [failed])).toEqual(['settled'])
})
