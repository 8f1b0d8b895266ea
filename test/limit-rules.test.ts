import { defineJob, RateLimited } from 'holdfast'
import { expect, gate, test, until } from './fixtures.ts'
import { runDuty } from './limits/duty.ts'

const many = <T>(count: number, make: (n: number) => T) => Array.from({ length: count }, (_, n) => make(n))
const runningCount = `select coalesce(sum(length(done) - bit_count(done)), 0)::int as n from holdfast.lease`

test('no more jobs start than the rate allows', async ({ open, query }) => {
  const paced = defineJob('paced', { limit: { rate: { limit: 3, perMs: 3_600_000 } }, run: () => {} })
  const hf = await open({ jobs: [paced] })
  await hf.submitMany(
    paced,
    many(10, () => ({ input: null })),
  )
  await hf.work()
  await until(async () => (await query('select from holdfast.outcome')).length === 3, 'three have ended')
  await until(async () => (await hf.limits.get({ kind: 'paced' }))?.running === 0)
  expect(await query('select from holdfast.ready')).toHaveLength(7)
  await hf.limits.set({ kind: 'paced' }, { rate: { limit: 1_000, perMs: 1_000 } })
  await until(async () => (await query('select from holdfast.outcome')).length === 10, 'all have ended')
})

test('the tokens of a rate come back with time', async ({ open, query }) => {
  const paced = defineJob('paced', { limit: { rate: { limit: 2, perMs: 100 } }, run: () => {} })
  const hf = await open({ jobs: [paced], pollMs: 60_000 })
  await hf.work()
  await hf.submitMany(
    paced,
    many(8, () => ({ input: null })),
  )
  await until(async () => (await query('select from holdfast.outcome')).length === 8, 'all have ended')
})

test('a rate-limited job costs no retry and holds back its whole key, and no other', async ({ open, query }) => {
  const told: string[] = []
  let isRefusing = true
  const call = defineJob('call', {
    retries: 0,
    limit: { key: (input: { api: string }) => input.api, concurrency: 1 },
    run: ({ input }) => {
      const { api } = input as { api: string }
      told.push(api)
      if (api === 'busy' && isRefusing) throw new RateLimited({ retryAfterMs: 3_600_000 })
    },
  })
  const hf = await open({ jobs: [call] })
  const busy = await hf.submitMany(
    call,
    many(3, () => ({ input: { api: 'busy' } })),
  )
  await hf.work()
  await until(() => told.includes('busy'))
  const other = await hf.submit(call, { api: 'free' })
  await other.result()
  expect(told.filter((api) => api === 'busy')).toHaveLength(1)
  const [held] = await query<{ failures: number; is_later: boolean }>(
    `select failures, run_at > now() + interval '50 min' as is_later from holdfast.ready where attempt = 1`,
  )
  expect(held).toEqual({ failures: 0, is_later: true })
  const waiting = (await query<{ job_id: string }>('select job_id from holdfast.ready where attempt = 0'))[0]
  expect((await hf.why(waiting?.job_id as string)).verdict.code).toBe('limit-held')
  // an hour later
  isRefusing = false
  await query(`update holdfast.gate set held_until = now(), next_at = now() where key = ' busy'`)
  await query('update holdfast.ready set run_at = now()')
  await Promise.all(busy.map((job) => job.result()))
})

test('a limit that is set at run time wins over the code, and ends when it is removed', async ({ open, query }) => {
  const stop = gate()
  const mail = defineJob('mail', { limit: { concurrency: 1 }, run: () => stop.promise })
  const hf = await open({ jobs: [mail], concurrency: 10 })
  await hf.submitMany(
    mail,
    many(10, () => ({ input: null })),
  )
  await hf.work()
  const running = async () => (await query<{ n: number }>(runningCount))[0]?.n
  await until(async () => (await running()) === 1)
  await hf.limits.set({ kind: 'mail' }, { concurrency: 4 }, { by: 'ada' })
  await until(async () => (await running()) === 4)
  expect(await hf.limits.get({ kind: 'mail' })).toMatchObject({
    concurrency: 4,
    source: 'set',
    running: 4,
    changedBy: 'ada',
  })
  await hf.limits.remove({ kind: 'mail' })
  expect(await hf.limits.get({ kind: 'mail' })).toMatchObject({ concurrency: 1, source: 'declared' })
  expect(await running()).toBe(4)
  stop.open()
  await until(async () => (await query('select from holdfast.outcome')).length === 10)
})

test('jobs that were queued before a limit was set wait at its gate', async ({ open, query }) => {
  const stop = gate()
  const plain = defineJob('plain', { run: () => stop.promise })
  const hf = await open({ jobs: [plain], concurrency: 10 })
  await hf.submitMany(
    plain,
    many(5, () => ({ input: null })),
  )
  await query(
    `insert into holdfast.limiter (scope, name, chosen) values ('kind', 'plain', '{"whole": {"concurrency": 2}}')`,
  )
  await hf.work()
  await until(async () => (await query<{ n: number }>(runningCount))[0]?.n === 2)
  expect(await query('select from holdfast.ready where gate_key is null')).toHaveLength(0)
  expect((await hf.audit()).violations).toEqual([])
  stop.open()
  await until(async () => (await query('select from holdfast.outcome')).length === 5)
})

test('a gate that was closed by hand is opened again', async ({ hf, store, query }) => {
  const one = defineJob('one', { limit: { concurrency: 1 }, run: () => {} })
  await hf.limits.set({ kind: 'one' }, { concurrency: 1 })
  await hf.submit(one, null)
  await query('delete from holdfast.gate_hint')
  expect(await query('select from holdfast.gate where is_open')).toHaveLength(0)
  await runDuty(store)
  expect(await query('select key from holdfast.gate_hint')).toEqual([{ key: ' ' }])
})

test('why names the limit and who holds its slots', async ({ open }) => {
  const stop = gate()
  const mail = defineJob('mail', { limit: { key: 'to', concurrency: 1 }, run: () => stop.promise })
  const hf = await open({ jobs: [mail], concurrency: 5 })
  const first = await hf.submit(mail, { to: 'ada' } as never)
  await hf.work()
  await until(async () => (await hf.get(first.id))?.state === 'running')
  const second = await hf.submit(mail, { to: 'ada' } as never)
  const { code, sentence } = (await hf.why(second.id)).verdict
  expect(code).toBe('limit-full')
  expect(sentence).toContain('kind `mail` and key `ada` is 1, and 1 job holds its slots')
  expect(sentence).toContain(first.id)
  stop.open()
  await second.result()
})

test('a limit on a queue counts all its kinds', async ({ open, query }) => {
  const stop = gate()
  const kinds = many(3, (n) => defineJob(`kind-${n}`, { queue: 'shared', run: () => stop.promise }))
  const hf = await open({ jobs: kinds, concurrency: 20 })
  await hf.limits.set({ queue: 'shared' }, { concurrency: 4 })
  for (const kind of kinds)
    await hf.submitMany(
      kind,
      many(4, () => ({ input: null })),
    )
  await hf.work()
  await until(async () => (await query<{ n: number }>(runningCount))[0]?.n === 4)
  expect(await query('select from holdfast.ready')).toHaveLength(8)
  stop.open()
  await until(async () => (await query('select from holdfast.outcome')).length === 12)
})

test('a wrong limit is refused with what to do, and changes nothing', async ({ hf, query }) => {
  const refused = async (ask: () => Promise<unknown>) =>
    expect(
      await ask().then(
        () => 'accepted',
        (error) => error.code,
      ),
    ).toBe('option_invalid')
  await refused(() => hf.limits.set({ kind: 'mail' }, { concurrency: -1 }))
  await refused(() => hf.limits.set({ kind: 'mail' }, { concurrency: 1.5 }))
  await refused(() => hf.limits.set({ kind: 'mail' }, {}))
  await refused(() => hf.limits.set({ kind: 'mail' }, { rate: { limit: 0, perMs: 1 } }))
  await refused(() => hf.limits.set({ kind: 'mail' }, { fair: true }))
  await refused(() => hf.limits.set({ kind: 'no name' }, { concurrency: 1 }))
  await refused(() => hf.limits.set({ kind: 'mail', queue: 'both' } as never, { concurrency: 1 }))
  await refused(() => hf.limits.set({ queue: 'q' }, { weights: { acme: -1 } }))
  expect(await query('select from holdfast.limiter')).toHaveLength(0)
  expect(() => defineJob('mail', { limit: { concurrency: -1 }, run: () => {} })).toThrow('use a whole number from 0')
  const keyed = defineJob('keyed', { limit: { key: 'to', concurrency: 1 }, run: () => {} })
  await expect(hf.submit(keyed, { to: 'x'.repeat(201) } as never)).rejects.toThrow('1 to 200 characters')
  await expect(hf.submit(keyed, {} as never)).rejects.toThrow('Check the key of its limit')
})
