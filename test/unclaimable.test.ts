import { defineJob } from 'holdfast'
import { expect, test } from './fixtures.ts'

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
