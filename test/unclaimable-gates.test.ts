import { defineJob } from 'holdfast'
import { expect, test, until } from './fixtures.ts'

const limit = { concurrency: 1 }

/** Makes the server reject every claim of one kind, as a trigger of another program may. */
const refuseBulk = `
  create function public.refuse_bulk() returns trigger language plpgsql as $$
  begin
    if new.kind = 'bulk' then raise exception 'planted: no claim of kind bulk'; end if;
    return new;
  end $$;
  create trigger refuse_bulk before insert on holdfast.lease for each row execute function public.refuse_bulk()`

const many = Array.from({ length: 2_000 }, () => ({ input: null as unknown }))
const postponed = `select from holdfast.event_log where type = 'job.postponed'`

test('thousands of jobs with a limit that cannot be claimed delay no other job, with a limit or without', async ({
  open,
  query,
}) => {
  const bulk = defineJob('bulk', { limit, run: () => 'bulk' })
  const other = defineJob('other', { limit, run: () => 'other' })
  const free = defineJob('free', { run: () => 'free' })
  const hf = await open({ jobs: [bulk, other, free], concurrency: 20 })
  await hf.work()
  await query(refuseBulk)
  const [first] = await hf.submitMany(bulk, many)
  await until(async () => (await query(postponed)).length > 0, 'claims fail')
  // all the while, claims of the bad kind fail again and again
  while ((await query(postponed)).length < 60) {
    const [one, two] = [await hf.submit(other, null), await hf.submit(free, null)]
    expect(await one.result({ timeout: 4_000 })).toMatchObject({ output: 'other' })
    expect(await two.result({ timeout: 4_000 })).toMatchObject({ output: 'free' })
  }
  await query('drop trigger refuse_bulk on holdfast.lease')
  await query(`update holdfast.ready set run_at = now() where kind = 'bulk'`)
  expect(await first?.result({ timeout: 20_000 })).toMatchObject({ output: 'bulk' })
}, 120_000)

test('a gate that cannot be written delays no other kind', async ({ open, query }) => {
  const bulk = defineJob('bulk', { limit, run: () => 'bulk' })
  const other = defineJob('other', { limit, run: () => 'other' })
  const hf = await open({ jobs: [bulk, other], concurrency: 20 })
  await hf.work()
  await query(`
    create function public.refuse_gate() returns trigger language plpgsql as $$ begin raise exception 'planted'; end $$;
    create trigger refuse_gate before insert or update on holdfast.gate for each row when (new.kind = 'bulk') execute function public.refuse_gate()`)
  const stuck = await hf.submit(bulk, null)
  for (let count = 0; count < 5; count++)
    expect(await (await hf.submit(other, null)).result({ timeout: 4_000 })).toMatchObject({ output: 'other' })
  await query('drop trigger refuse_gate on holdfast.gate')
  expect(await stuck.result({ timeout: 20_000 })).toMatchObject({ output: 'bulk' })
}, 60_000)

test('remote workers get other jobs with limits while thousands of one kind, suspects among them, cannot be claimed', async ({
  hf,
  query,
}) => {
  await query(refuseBulk)
  await hf.limits.set({ kind: 'bulk' }, limit)
  await hf.limits.set({ kind: 'other' }, limit)
  await hf.submitMany(defineJob('bulk', { run: () => {} }), many)
  await query('update holdfast.ready set crashes = 2 where job_id in (select job_id from holdfast.ready limit 1000)')
  const { id: session } = await hf.remote.open({ kinds: [{ name: 'bulk' }, { name: 'other' }] })
  const other = defineJob('other', { run: () => {} })
  for (let count = 0; count < 6; count++) {
    const { id } = await hf.submit(other, null)
    const [one] = await hf.remote.claim(session, { most: 10, waitMs: 4_000 })
    expect(one).toMatchObject({ id })
    await hf.remote.settle(session, [{ id, attempt: 1, outcome: 'succeeded' }])
  }
}, 120_000)
