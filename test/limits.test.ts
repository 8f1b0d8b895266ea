import { defineJob } from 'holdfast'
import { declareKinds } from '#holdfast/limits/limits'
import { openStore } from '#holdfast/postgres/store'
import { finishJobs } from '#holdfast/settle/settle.sql'
import type { ClaimBatch } from '#holdfast/transitions/claim.sql'
import { heldFenceOf } from '#holdfast/worker/attempt'
import { rowsOf } from '#holdfast/worker/claim-batch'
import { claimGated } from '#holdfast/worker/gated-claim.sql'
import { memberKinds, startMember, swift } from './crash/member.ts'
import { expect, gate, test, until } from './fixtures.ts'

const cases = {
  'a limit of 1 on a kind': { limit: { concurrency: 1 }, atOnce: 3 },
  'a limit of 1 on a key': { limit: { concurrency: 1, key: 'of' }, atOnce: 3 },
  // its gate stays open between claims
  'a limit of 3 on a key': { limit: { concurrency: 3, key: 'of' }, atOnce: 1 },
}
for (const [name, { limit, atOnce }] of Object.entries(cases))
  test(`50 connections on ${name} never hold more leases than that`, { timeout: 60_000 }, async ({
    url,
    query,
    hf,
    given,
  }) => {
    const kind = defineJob('one', { queue: 'q', limit, run: () => {} })
    const store = openStore({ url, poolSize: 51, isPooled: false, statementTimeoutMs: 15_000 })
    await declareKinds(store, [kind])
    const count = 200
    await hf.submitMany(
      kind,
      Array.from({ length: count }, () => ({ input: { of: 1 } as never })),
    )
    const sessionId = await given.session()
    let held = 0
    let most = 0
    let done = 0
    const work = async () => {
      while (done < count) {
        const rows = await store.run(claimGated, {
          sessionId,
          lanes: [{ queue: 'q', kind: 'one', stageCount: 1 }],
          most: atOnce,
          mostBytes: Number.MAX_VALUE,
          deadlinesMs: '{"one":[60000]}',
          isSuspect: false,
          after: '',
        })
        const jobs = rowsOf(
          rows.filter((row): row is ClaimBatch => row.lease_id !== null),
          sessionId,
        )
        if (jobs.length === 0) continue
        held += jobs.length
        const [shown] = await query<{ n: number }>(`select count(*)::int as n from holdfast.running`)
        most = Math.max(most, held, shown?.n ?? 0)
        held -= jobs.length
        done += jobs.length
        const fences = jobs.map(heldFenceOf)
        await store.run(finishJobs, { fences, outputs: fences.map(() => null), stageNames: fences.map(() => 'run') })
      }
    }
    await Promise.all(Array.from({ length: 50 }, work))
    await store.close()
    expect(most).toBe(limit.concurrency)
    expect(done).toBe(count)
    expect(await query(`select from holdfast.outcome where state = 'succeeded'`)).toHaveLength(count)
  })

test('a full key never blocks other keys', async ({ open }) => {
  const stop = gate()
  const kind = defineJob('mail', {
    limit: { key: (input: { customer: string }) => input.customer, concurrency: 2 },
    run: async ({ input }) => {
      if ((input as { customer: string }).customer === 'slow') await stop.promise
    },
  })
  const hf = await open({ jobs: [kind], concurrency: 10 })
  const slow = await hf.submitMany(
    kind,
    Array.from({ length: 20 }, () => ({ input: { customer: 'slow' } })),
  )
  const quick = await hf.submitMany(
    kind,
    Array.from({ length: 20 }, () => ({ input: { customer: 'quick' } })),
  )
  await hf.work()
  await Promise.all(quick.map((job) => job.result()))
  const states = await Promise.all(slow.map(async (job) => (await hf.get(job.id))?.state))
  expect(states.filter((state) => state === 'running')).toHaveLength(2)
  stop.open()
  await Promise.all(slow.map((job) => job.result()))
})

test('a worker that is killed frees its slot, and the next process takes it', { timeout: 90_000 }, async ({
  url,
  hf,
}) => {
  const members = await Promise.all(
    Array.from({ length: 3 }, () => startMember({ url, kinds: ['single'], settings: swift })),
  )
  const { single } = memberKinds
  await Promise.all(members.map(() => hf.submit(single, null)))
  const running = async () => (await hf.list({ state: 'running' })).length
  const startedBy = () => members.filter((member) => member.started().length > 0)
  await until(() => startedBy().length === 1 && running().then((count) => count === 1), 'one runs')
  startedBy()[0]?.kill('SIGKILL')
  await until(() => startedBy().length === 2, 'the next one runs')
  expect(await running()).toBe(1)
})

test('remote workers keep to limits, and pass on that another system asked to wait', async ({ hf, query }) => {
  const far = defineJob('far', { queue: 'far', run: () => {} })
  await hf.limits.set({ kind: 'far' }, { concurrency: 2 })
  await hf.submitMany(
    far,
    Array.from({ length: 5 }, () => ({ input: null })),
  )
  const { id } = await hf.remote.open({ kinds: [{ name: 'far', queue: 'far' }] })
  const [one, two, ...others] = await hf.remote.claim(id, { most: 5 })
  if (!one || !two) throw new Error('Too little was claimed.')
  expect(others).toEqual([])
  expect(await hf.remote.claim(id, { most: 5 })).toEqual([])
  const settled = await hf.remote.settle(id, [
    { id: one.id, attempt: 1, outcome: 'succeeded' },
    { id: two.id, attempt: 1, outcome: 'released', retryAfterMs: 3_600_000 },
  ])
  expect(settled).toEqual(['settled', 'settled'])
  expect(await hf.remote.claim(id, { most: 5 })).toEqual([])
  expect(await query('select held_until > now() as is_held from holdfast.gate')).toEqual([{ is_held: true }])
})
