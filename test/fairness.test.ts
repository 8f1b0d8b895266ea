import { defineJob } from 'holdfast'
import type { Store } from '#holdfast/postgres/store'
import type { ClaimBatch } from '#holdfast/transitions/claim.sql'
import { rowsOf } from '#holdfast/worker/claim-batch'
import { claimGated } from '#holdfast/worker/gated-claim.sql'
import { expect, test } from './fixtures.ts'

const work = defineJob('work', { queue: 'fair', run: () => {} })
const many = (count: number, tenant: string) => Array.from({ length: count }, () => ({ input: null, tenant }))

async function claim(store: Store, sessionId: number, most: number): Promise<string[]> {
  const lanes = [{ queue: 'fair', kind: 'work', stageCount: 1 }]
  const how = { mostBytes: Number.MAX_VALUE, deadlinesMs: '{"work":[60000]}', isSuspect: false, after: '' }
  const params = { sessionId, lanes, most, ...how }
  const rows = await store.run(claimGated, params)
  return rowsOf(
    rows.filter((row): row is ClaimBatch => row.lease_id !== null),
    sessionId,
  ).map(({ tenant }) => tenant)
}

test('in a fair queue, tenants take turns even if workers claim one job at a time', async ({ hf, store, given }) => {
  await hf.limits.set({ queue: 'fair' }, { fair: true })
  await hf.submitMany(work, many(500, 'big'))
  await hf.submitMany(work, many(5, 'small'))
  const sessionId = await given.session()
  const order: string[] = []
  for (let n = 0; n < 10; n++) order.push(...(await claim(store, sessionId, 1)))
  expect(order.filter((tenant) => tenant === 'small')).toHaveLength(5)
})

test('a tenant that arrives while another has a backlog is served with the next claim', async ({
  hf,
  store,
  given,
}) => {
  await hf.limits.set({ queue: 'fair' }, { fair: true })
  await hf.submitMany(work, many(2_000, 'big'))
  const sessionId = await given.session()
  expect(await claim(store, sessionId, 500)).toHaveLength(500)
  await hf.submitMany(work, many(10, 'small'))
  const next = await claim(store, sessionId, 100)
  expect(next.filter((tenant) => tenant === 'small')).toHaveLength(10)
  expect(next.length).toBeGreaterThanOrEqual(50)
})

test('a tenant with twice the weight is served twice as often', { timeout: 120_000 }, async ({ hf, store, given }) => {
  await hf.limits.set({ queue: 'fair' }, { fair: true, weights: { gold: 2 } })
  await hf.submitMany(work, many(200, 'gold'))
  await hf.submitMany(work, many(200, 'iron'))
  const sessionId = await given.session()
  const order: string[] = []
  for (let n = 0; n < 30; n++) order.push(...(await claim(store, sessionId, 1)))
  const gold = order.filter((tenant) => tenant === 'gold').length
  expect(gold).toBeGreaterThanOrEqual(19)
  expect(gold).toBeLessThanOrEqual(21)
})
