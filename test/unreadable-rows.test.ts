import { makeDuties } from '#holdfast/reaper/duties'
import { sweepOf } from './crash/sweep.ts'
import { expect, test } from './fixtures.ts'

/** Makes every read of the jobs in this lease fail, as a damaged file does. */
const damage = (lease: number) => `
  alter table holdfast.lease drop constraint lease_size;
  update holdfast.lease set job_ids = job_ids || job_ids where id = ${lease}`

for (const [which, end] of [
  ['dead worker', `update holdfast.session set ended_at = now(), ended_by = 'lock gone'`],
  ['worker whose handlers hang', `update holdfast.lease set deadline_at = now() - interval '1 s'`],
] as const)
  test(`a lease of a ${which} that can't be read is reported, and keeps only its own jobs from being revived`, async ({
    given,
    store,
    query,
  }) => {
    const bad = await given.running()
    const good = await Promise.all([1, 2, 3].map(() => given.running()))
    await query(damage(bad.leaseId))
    await query(end)
    const duties = makeDuties()
    const facts = { lease: bad.leaseId, reason: expect.stringContaining('out of valid range') }
    const first = await sweepOf(store, duties)
    expect(first).toMatchObject({ problems: [], notes: [{ isError: true, facts }] })
    expect(first.revived.map(({ id }) => id).sort()).toEqual(good.map(({ id }) => id).sort())
    // it is left alone for a while
    expect(await sweepOf(store, duties)).toMatchObject({ problems: [], notes: [], revived: [] })
    const later = await given.running()
    await query(end)
    expect((await sweepOf(store, duties)).revived.map(({ id }) => id)).toEqual([later.id])
  })

test('the database refuses a lease that has not as many bits as jobs', async ({ given, query }) => {
  await given.running()
  await expect(query('update holdfast.lease set job_ids = job_ids || job_ids')).rejects.toThrow('lease_size')
})

test('a session that the database does not let anyone end is reported, and keeps no other from being ended', async ({
  given,
  store,
  query,
}) => {
  const bad = await given.attemptOfDeadSession()
  const good = await Promise.all([1, 2, 3].map(() => given.attemptOfDeadSession()))
  await query(`
    create function holdfast.refuse_for_test() returns trigger language plpgsql as $$
    begin raise exception 'refused'; end $$;
    create trigger refuse_for_test before update on holdfast.session for each row
    when (old.id = ${bad.sessionId}) execute function holdfast.refuse_for_test()`)
  const { ended, revived, notes, problems } = await sweepOf(store, makeDuties())
  expect(problems).toEqual([])
  expect(ended.map(({ id }) => id).sort()).toEqual(good.map(({ sessionId }) => sessionId).sort())
  expect(revived.map(({ id }) => id).sort()).toEqual(good.map(({ id }) => id).sort())
  expect(notes).toMatchObject([{ isError: true, facts: { session: bad.sessionId } }])
})

test("a parked outcome that can't be read keeps no other from being written", async ({ given, store, query }) => {
  const sessionId = await given.session()
  const bad = await given.queued()
  const good = await given.queued()
  await query(`update holdfast.ready set run_at = '9999-01-01 00:00:00+00'`)
  await query(
    `insert into holdfast.parked_outcome (job_id, attempt, session_id, outcome, reason, next_at)
    select job_id, attempt, $1, '{"move":"finish","output":"1","stageName":"one"}', 'planted', now() from holdfast.ready`,
    [sessionId],
  )
  // a view whose column fails for one row, as a damaged file does
  await query(`
    create function holdfast.read_for_test(id uuid, value text) returns text language plpgsql immutable as $$
    begin if id = '${bad.id}' then raise exception 'unreadable'; end if; return value; end $$;
    alter table holdfast.parked_outcome rename to parked_for_test;
    create view holdfast.parked_outcome as
    select job_id, attempt, session_id, holdfast.read_for_test(job_id, outcome) as outcome, reason, tries, parked_at, next_at
    from holdfast.parked_for_test`)
  const { failed, problems } = await sweepOf(store, makeDuties())
  expect(problems).toEqual([])
  expect(failed).toMatchObject([{ id: bad.id, orphan: 'outcome-refused' }])
  const states = await query('select id, state from holdfast.job_status')
  expect(states).toContainEqual({ id: good.id, state: 'succeeded' })
  expect(states).toContainEqual({ id: bad.id, state: 'queued' })
})
