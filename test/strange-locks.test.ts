import { migrate } from 'holdfast'
import { onTestFinished, vi } from 'vitest'
import { readConfig } from '#holdfast/config/config'
import { pruning } from '#holdfast/reaper/duties/prune'
import { call } from './cli/command.ts'
import { expect, test } from './fixtures.ts'
import { transaction } from './hold.ts'

const aMonthAgo = `update holdfast.outcome set finished_at = now() - interval '31 days'`

test('an advisory lock of a stranger, whatever its number, does not stop the removal of finished jobs', async ({
  url,
  query,
  given,
  hf,
}) => {
  await given.finished()
  await query(aMonthAgo)
  const stranger = await transaction(url)
  await stranger.query('select pg_advisory_lock(1212501060), pg_advisory_lock(1212501061)')
  expect(await hf.prune()).toMatchObject({ removed: 1, blockedBy: [] })
  expect(await query(`select holdfast.add_event_partitions('1 h', '30 days') limit 1`)).toHaveLength(1)
})

test('a transaction that keeps finished jobs from being removed is reported with its pid', async ({
  url,
  query,
  given,
  store,
  hf,
}) => {
  await given.finished()
  await query(aMonthAgo)
  const stranger = await transaction(url)
  const [{ pid }] = (await stranger.query('select pg_backend_pid() as pid from holdfast.prune_mark for update')).rows
  expect(await hf.prune({ dryRun: true })).toMatchObject({ due: [{ jobs: 1 }], blockedBy: [pid] })
  const dry = await call(['prune', '--dry-run'], { env: { HOLDFAST_URL: url } })
  expect(dry.stdout).toContain(`locks holdfast.prune_mark: pid ${pid}.`)

  const duty = pruning(readConfig({}, {}))
  expect(await duty.run(store)).toMatchObject({ pruned: { removed: 0 }, notes: [] })
  const startedMs = performance.now()
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => startedMs + 10_000)
  onTestFinished(() => clock.mockRestore())
  expect((await duty.run(store)).notes).toMatchObject([
    { isError: true, message: expect.stringContaining('locked holdfast.prune_mark'), facts: { pids: [pid] } },
  ])
  clock.mockRestore()
  await expect(hf.prune()).rejects.toMatchObject({ code: 'database_timeout', details: { pids: [pid] } })
  await stranger.query('rollback')
  expect(await hf.prune()).toMatchObject({ removed: 1 })
  expect((await duty.run(store)).notes).toEqual([])
})

test('a migration does not wait forever for its lock, and says who holds it', async ({ url }) => {
  const stranger = await transaction(url)
  await stranger.query(`set application_name = 'stranger'`)
  const [{ pid }] = (await stranger.query('select pg_backend_pid() as pid, pg_advisory_lock(1213156420)')).rows
  await expect(migrate(url, { waitMs: 200 })).rejects.toMatchObject({
    code: 'database_timeout',
    message: expect.stringContaining(`(pid ${pid}, application "stranger")`),
  })
  await stranger.end()
  expect(await migrate(url, { waitMs: 10_000 })).toEqual([])
})
