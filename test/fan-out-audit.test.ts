import type { Audit } from '#holdfast/audit/audit'
import { claimItems, finish, waiting } from './barrier/given.ts'
import { expect, test } from './fixtures.ts'

const found = ({ violations }: Audit) =>
  violations.flatMap(({ invariant, examples }) => examples.map((example) => ({ invariant, ...example })))

test('the audit finds a counter that disagrees with its items', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 2 })
  expect((await hf.audit()).violations).toEqual([])
  await query('update holdfast.barrier set succeeded = 1')
  expect(found(await hf.audit())).toMatchObject([
    {
      invariant: 'counters-match-ledger',
      subject: made.barrier.id,
      found: 'counts 1 succeeded, 0 failed, 0 cancelled, but its items are 0 succeeded, 0 failed, 0 cancelled',
    },
  ])
})

test('the audit finds a fan-out that was joined twice', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 1 })
  await finish(store, await claimItems({ given }, made))
  await query(`
    insert into holdfast.event (type, job_id, kind, tenant, attempt, stage)
    select type, job_id, kind, tenant, attempt, stage from holdfast.event where type = 'job.joined'`)
  expect(found(await hf.audit())).toMatchObject([
    { invariant: 'one-join-per-fan-out', subject: made.parent.id, found: 'fanned out 1 times and was joined 2 times' },
  ])
})

test('the audit finds a job that waits for no barrier, and an item of none', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 1 })
  await query('delete from holdfast.barrier')
  expect(found(await hf.audit())).toMatchObject([
    { invariant: 'waiting-has-barrier', subject: made.parent.id },
    { invariant: 'item-has-barrier', subject: made.items[0] },
  ])
})
