import { defineJob } from 'holdfast'
import { expect, test, until } from './fixtures.ts'

const large = 'x'.repeat(5_000)

/** Makes the server fail whenever the large input of one job is read, as it does for a damaged value. */
const damageInput = (id: string) => `
  alter table holdfast.job_payload rename to whole_payload;
  create function holdfast.damaged(job_id uuid, input json) returns json language plpgsql stable as $$
  begin
    if job_id = '${id}' then raise data_corrupted using message = 'missing chunk number 0 for toast value'; end if;
    return input;
  end $$;
  create view holdfast.job_payload as
    select job_id, bytes, holdfast.damaged(job_id, input) as input, meta, trace from holdfast.whole_payload`

test('a job that cannot be claimed is postponed, and stops no other', async ({ open, query }) => {
  const read = defineJob('read', { run: () => 'read' })
  const other = defineJob('other', { run: () => 'other' })
  const hf = await open({ jobs: [read, other] })
  const bad = await hf.submit(read, large)
  const [behind, beside] = [await hf.submit(read, large), await hf.submit(other, null)]
  await query(damageInput(bad.id))
  await hf.work()
  expect(await behind.result({ timeout: 20_000 })).toMatchObject({ output: 'read' })
  expect(await beside.result({ timeout: 20_000 })).toMatchObject({ output: 'other' })
  const { verdict } = await hf.why(bad.id)
  expect(verdict).toMatchObject({ code: 'unclaimable', sentence: expect.stringContaining('missing chunk number 0') })
  expect(await query('select attempt from holdfast.ready where job_id = $1', [bad.id])).toEqual([{ attempt: 0 }])
})

/** Makes every claim of one job fail with a SQLSTATE, as a trigger does that asks a database which is down, or a block that can't be read. */
const refuseClaim = (id: string, errcode: string) => `
  create function refused() returns trigger language plpgsql as $$
  begin raise exception 'planted' using errcode = '${errcode}'; end $$;
  create trigger refused before delete on holdfast.ready for each row when (old.job_id = '${id}') execute function refused()`

test.for(['08006', '58030', '53400'])(
  'a job whose claims fail with %s is postponed, and stops no other',
  async (errcode, { open, query }) => {
    const greet = defineJob('greet', { run: () => 'hello' })
    const hf = await open({ jobs: [greet] })
    const bad = await hf.submit(greet, null)
    const behind = await hf.submit(greet, null)
    await query(refuseClaim(bad.id, errcode))
    await hf.work()
    expect(await behind.result({ timeout: 20_000 })).toMatchObject({ output: 'hello' })
    expect((await hf.why(bad.id)).verdict).toMatchObject({
      code: 'unclaimable',
      sentence: expect.stringContaining('planted'),
    })
  },
)

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

test('thousands of jobs of one kind that cannot be claimed delay no job of another kind by more than seconds, and run once they can be claimed', async ({
  open,
  query,
}) => {
  const bulk = defineJob('bulk', { run: () => 'bulk' })
  const other = defineJob('other', { run: () => 'other' })
  const hf = await open({ jobs: [bulk, other], concurrency: 20 })
  await query(refuseBulk)
  const [first] = await hf.submitMany(bulk, many)
  await hf.work()
  await until(async () => (await query(postponed)).length > 0, 'claims fail')
  // all the while, claims of the bad kind fail again and again
  while ((await query(postponed)).length < 80) {
    const one = await hf.submit(other, null)
    expect(await one.result({ timeout: 4_000 })).toMatchObject({ output: 'other' })
  }
  await query('drop trigger refuse_bulk on holdfast.lease')
  await query(`update holdfast.ready set run_at = now() where kind = 'bulk'`)
  expect(await first?.result({ timeout: 20_000 })).toMatchObject({ output: 'bulk' })
  await until(async () => (await query('select from holdfast.ready')).length === 0, 'all are claimed', 20_000)
}, 120_000)

test('thousands of suspects of one kind that cannot be claimed keep no other suspect from running', async ({
  open,
  query,
}) => {
  const bulk = defineJob('bulk', { run: () => 'bulk' })
  const other = defineJob('other', { run: () => 'other' })
  // a claim of one suspect starts with another kind each time, and fails if it comes to `bulk` before `other`
  const idle = Array.from({ length: 28 }, (_, n) => defineJob(`idle${n}`, { run: () => {} }))
  const hf = await open({ jobs: [bulk, other, ...idle], concurrency: 20 })
  await query(refuseBulk)
  await hf.submitMany(bulk, many)
  await query('update holdfast.ready set crashes = 2')
  await hf.work()
  await until(async () => (await query(postponed)).length > 0, 'claims fail')
  for (let count = 0; count < 4; count++) {
    // nobody may claim it before it is a suspect
    const one = await hf.submit(other, null, { delayMs: 3_600_000 })
    await query('update holdfast.ready set crashes = 2, run_at = now() where job_id = $1', [one.id])
    expect(await one.result({ timeout: 6_000 })).toMatchObject({ output: 'other' })
  }
}, 120_000)

test('remote workers get other jobs while thousands of one kind, suspects among them, cannot be claimed', async ({
  hf,
  query,
}) => {
  await query(refuseBulk)
  await hf.submitMany(defineJob('bulk', { run: () => {} }), many)
  await query('update holdfast.ready set crashes = 2 where job_id in (select job_id from holdfast.ready limit 1000)')
  const { id: session } = await hf.remote.open({ kinds: [{ name: 'bulk' }, { name: 'other' }] })
  const other = defineJob('other', { run: () => {} })
  for (let count = 0; count < 6; count++) {
    const { id } = await hf.submit(other, null)
    const startedMs = performance.now()
    expect(await hf.remote.claim(session, { most: 10, waitMs: 4_000 })).toMatchObject([{ id }])
    expect(performance.now() - startedMs).toBeLessThan(4_000)
  }
}, 120_000)
