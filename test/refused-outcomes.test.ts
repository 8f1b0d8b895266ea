import { defineJob, type Holdfast } from 'holdfast'
import { expect, type Fixtures, test, until } from './fixtures.ts'

type Query = <Row = Record<string, unknown>>(text: string, values?: unknown[]) => Promise<Row[]>

interface Refusal {
  /** Default: the table of outcomes. */
  table?: string
  /** The SQLSTATE. */
  errcode?: string
}

/** Makes the database refuse what a stranger's trigger speaks against; answers how to remove it. */
async function refuse(
  query: Query,
  when: string,
  on: string,
  { table = 'outcome', errcode = 'P0001' }: Refusal = {},
): Promise<() => Promise<unknown>> {
  await query(`create function refused() returns trigger language plpgsql as $$
    begin
      if ${when} then raise exception 'planted' using errcode = '${errcode}'; end if;
      return case when tg_op = 'DELETE' then old else new end;
    end $$`)
  await query(`create trigger refused before ${on} on holdfast.${table} for each row execute function refused()`)
  return () => query(`drop trigger refused on holdfast.${table}`)
}

/**
 * What one row can cause on a healthy connection: a trigger that asks another database, which is down, stopping or full; a file that can't be
 * read; a limit of the server for one statement.
 */
const rowsErrors = ['08001', '08006', '57P01', '53300', '53400', '58030', '58P01']

const isBad = `(select kind from holdfast.job where id = new.job_id) = 'bad'`

/** Two kinds that note their runs. */
function kinds() {
  const runs: string[] = []
  const run = (kind: string) =>
    defineJob(kind, {
      run: () => {
        runs.push(kind)
        return kind
      },
    })
  return { runs, bad: run('bad'), good: run('good') }
}

async function goodOnesEnd(hf: Holdfast, good: ReturnType<typeof kinds>['good']): Promise<void> {
  const handles = await hf.submitMany(
    good,
    Array.from({ length: 10 }, (_, input) => ({ input: input as unknown })),
  )
  for (const { id } of handles)
    expect(await hf.handle(id, good).result({ timeout: 15_000 })).toMatchObject({ state: 'succeeded' })
}

test('an outcome that the database refuses fails with the reason, is counted, and runs once', async ({
  open,
  query,
}) => {
  const { runs, bad, good } = kinds()
  await refuse(query, `${isBad} and new.state = 'succeeded'`, 'insert')
  const hf = await open({ jobs: [bad, good] })
  await hf.work()
  const { id } = await hf.submit(bad, null)
  await goodOnesEnd(hf, good)
  const ended = await until(async () => (await hf.get(id))?.error && hf.get(id), 'it has failed')
  expect(ended).toMatchObject({
    state: 'failed',
    attempt: 1,
    failures: 1,
    error: { message: expect.stringContaining('planted') },
  })
  expect(runs.filter((kind) => kind === 'bad')).toHaveLength(1)
})

test.for(rowsErrors)(
  'an outcome that alone makes the database fail with %s is refused, and delays no other',
  async (errcode, { open, query }) => {
    const { runs, bad, good } = kinds()
    await refuse(query, `${isBad} and new.state = 'succeeded'`, 'insert', { errcode })
    const hf = await open({ jobs: [bad, good] })
    await hf.work()
    const { id } = await hf.submit(bad, null)
    await goodOnesEnd(hf, good)
    const ended = await until(async () => (await hf.get(id))?.error && hf.get(id), 'it has failed')
    expect(ended).toMatchObject({ state: 'failed', attempt: 1, error: { message: expect.stringContaining('planted') } })
    expect(runs.filter((kind) => kind === 'bad')).toHaveLength(1)
  },
)

async function parksUntilAccepted(errcode: string, { open, query }: Pick<Fixtures, 'open' | 'query'>): Promise<void> {
  const { runs, bad, good } = kinds()
  const allow = await refuse(query, isBad, 'insert', { errcode })
  const hf = await open({ jobs: [bad, good], heartbeatMs: 100 })
  await hf.work()
  const { id } = await hf.submit(bad, null)
  const parked = async () => (await query<{ tries: number }>('select tries from holdfast.parked_outcome'))[0]
  await until(parked, 'it is parked')
  await goodOnesEnd(hf, good)
  expect(await hf.get(id)).toMatchObject({ state: 'queued', attempt: 1, failures: 1 })
  expect(await hf.why(id)).toMatchObject({
    orphan: 'outcome-refused',
    verdict: { code: 'outcome-refused', sentence: expect.stringContaining('planted') },
    repair: { name: 'settle-parked' },
  })
  await expect(hf.repair(id)).rejects.toThrow('planted')
  expect(await hf.get(id)).toMatchObject({ state: 'queued', attempt: 1, failures: 1 })
  await query(`update holdfast.parked_outcome set parked_at = now() - interval '1 h'`)
  const { violations } = (await hf.audit()) as unknown as { violations: { invariant: string; subject: string }[] }
  expect(JSON.stringify(violations)).toContain('planted')
  for (const tries of [1, 2]) {
    await query('update holdfast.parked_outcome set next_at = now()')
    await until(async () => ((await parked())?.tries ?? 0) >= tries, 'the leader has tried it again')
  }
  await allow()
  await query('update holdfast.parked_outcome set next_at = now()')
  expect(await hf.handle(id, bad).result({ timeout: 15_000 })).toMatchObject({ output: 'bad' })
  expect(await parked()).toBeUndefined()
  expect(runs.filter((kind) => kind === 'bad')).toHaveLength(1)
}

test('a job whose every outcome is rejected is parked, does not run again, and ends when the database accepts its outcome', {
  timeout: 60_000,
}, async ({ open, query }) => {
  await parksUntilAccepted('P0001', { open, query })
})

test.for(['08006', '58030'])(
  'a job whose every outcome is rejected with %s is parked as well',
  { timeout: 60_000 },
  (errcode, { open, query }) => parksUntilAccepted(errcode, { open, query }),
)

test('a repair writes a parked outcome at once', async ({ open, query }) => {
  const { bad } = kinds()
  const allow = await refuse(query, isBad, 'insert')
  const hf = await open({ jobs: [bad] })
  const working = await hf.work()
  const { id } = await hf.submit(bad, null)
  await until(async () => (await query('select from holdfast.parked_outcome')).length === 1, 'it is parked')
  await working.stop()
  await allow()
  expect(await hf.repair(id)).toMatchObject({ repair: 'settle-parked', isApplied: true, why: { state: 'succeeded' } })
  expect((await hf.timeline(id)).map(({ type }) => type)).toEqual(['job.submitted', 'job.parked', 'job.finished'])
})

test('an ending takes the place of a twin that half a restore left among the finished', async ({
  open,
  query,
  given,
  store,
}) => {
  const { bad } = kinds()
  const hf = await open({ jobs: [bad] })
  const { id } = await hf.submit(bad, null)
  const twin = await given.finished('failed')
  await query('alter table holdfast.outcome disable trigger outcome_stands')
  await query('update holdfast.outcome set job_id = $1 where job_id = $2', [id, twin.id])
  await query('delete from holdfast.job where id = $1', [twin.id])
  await query('alter table holdfast.outcome enable trigger outcome_stands')
  await hf.work()
  await until(
    async () => (await query('select from holdfast.ready union all select from holdfast.lease')).length === 0,
    'the live one has ended',
  )
  expect(await hf.get(id)).toMatchObject({ state: 'succeeded', outputs: { run: 'bad' }, failures: 0 })
  expect((await hf.timeline(id)).map(({ type }) => type)).toEqual(['job.submitted', 'job.finished'])
  expect(await query('select from holdfast.job_status where finished_at is not null')).toHaveLength(1)
  await store.close()
})

test('a job that the database lets nobody change stays with its worker, runs once, and stops nobody', async ({
  open,
  query,
}) => {
  const { runs, bad, good } = kinds()
  const hf = await open({ jobs: [bad, good], heartbeatMs: 100 })
  const allow = await refuse(query, `old.kind = 'bad'`, 'update or delete', { table: 'lease' })
  await hf.work()
  const { id } = await hf.submit(bad, null)
  await until(() => runs.includes('bad'), 'it runs')
  await goodOnesEnd(hf, good)
  await goodOnesEnd(hf, good)
  expect(await hf.get(id)).toMatchObject({ state: 'running', attempt: 1 })
  await allow()
  await until(
    async () => (await query('select from holdfast.job_status where finished_at is null')).length === 0,
    'it has ended',
    60_000,
  )
  expect(await hf.get(id)).toMatchObject({ state: 'succeeded' })
  expect(runs.filter((kind) => kind === 'bad')).toHaveLength(1)
}, 90_000)

test('a worker stops although the database lets nobody change one of its jobs, and does not fail that job', async ({
  open,
  query,
}) => {
  const { runs, bad } = kinds()
  await refuse(query, `old.kind = 'bad'`, 'update or delete', { table: 'lease' })
  const quickly = { leaseMs: 1_500, lostAfterMs: 1_000, heartbeatMs: 100, abortMarginMs: 100, leaderLeaseMs: 600 }
  const hf = await open({ jobs: [bad], ...quickly, drainMs: 0 })
  const working = await hf.work()
  const { id } = await hf.submit(bad, null)
  await until(() => runs.length === 1, 'it has run')
  await working.stop()
  expect(await hf.get(id)).toMatchObject({ state: 'running', attempt: 1, failures: 0 })
})
