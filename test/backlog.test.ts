import { type Duty, report } from '#holdfast/reaper/duty'
import { runSweep } from '#holdfast/reaper/reaper'
import { swift } from './crash/member.ts'
import { expect, test, until } from './fixtures.ts'

/** Sessions that ended long ago, and take a millisecond each to remove. */
const forgettable = (count: number) => `
  insert into holdfast.session (started_at, lease_until, lost_after, ended_at, ended_by, pid, host, version, kinds, queues, concurrency)
  select long.ago, long.ago, interval '1 s', long.ago, 'itself', 1, 'old', '0', '{}', '{}', 1
  from (select now() - interval '3 days' as ago) as long, generate_series(1, ${count});
  create function holdfast.slow_for_test() returns trigger language plpgsql as $$
  begin perform pg_sleep(0.001); return old; end $$;
  create trigger slow_for_test before delete on holdfast.session for each row execute function holdfast.slow_for_test()`

test('a worker that dies while the leader works off a backlog is noticed, and the rest of the backlog follows at once', async ({
  given,
  open,
  query,
  hf: reader,
}) => {
  const count = 3_000
  await query(forgettable(count))
  const left = async () => (await query(`select from holdfast.session where host = 'old'`)).length
  const hf = await open(swift)
  await hf.reap()
  await until(async () => (await left()) < count, 'the backlog is being worked off')
  const orphan = await given.attemptOfDeadSession()
  await until(async () => (await reader.get(orphan.id))?.state === 'queued', 'the orphan is revived')
  expect(await left()).toBeGreaterThan(0)
  // this duty runs once a minute
  await until(async () => (await left()) === 0, 'the backlog is worked off')
}, 60_000)

/** A duty that notes its runs, and always has more to do. */
function endless(name: string, runs: string[]): Duty {
  return {
    name,
    everyMs: 0,
    async run() {
      runs.push(name)
      await new Promise(setImmediate)
      return report({ isFull: true })
    },
  }
}

test('a sweep spends its budget on one backlog after another, and names those that it did not reach', async ({
  store,
}) => {
  const runs: string[] = []
  const observer = { elected() {}, deposed() {}, done() {}, swept() {}, onError() {} }
  const recovery: Duty = { ...endless('recovery', runs), budget: 'own' }
  const due = [recovery, endless('second', runs), endless('third', runs)]
  const sweep = await runSweep(store, due, observer, () => true, { budgetMs: 20 })
  expect(new Set(runs)).toEqual(new Set(['recovery', 'second']))
  expect(sweep.left).toEqual({ cut: ['recovery', 'second'], unreached: ['third'] })
})
