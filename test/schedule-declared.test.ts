import { type AnyJob, defineJob, type ScheduleDeclaration } from 'holdfast'
import { z } from 'zod'
import { expect, test, until } from './fixtures.ts'
import { strangerHolds } from './hold.ts'

const run = () => {}
const nightly = (schedule?: ScheduleDeclaration<{ day: string }> | ScheduleDeclaration<{ day: string }>[]) =>
  defineJob('nightly', { input: z.object({ day: z.string() }), ...(schedule && { schedule }), run })
const input = { day: 'today' }
const declared = { cron: '0 3 * * *', tz: 'Europe/Berlin', input }

/** Starts and stops a worker with this kind, as a deploy does. */
const deploying = test.extend<{ deploy: (...jobs: AnyJob[]) => Promise<void> }>({
  deploy: async ({ open }, use) =>
    use(async (...jobs) => {
      const hf = await open({ jobs })
      const working = await hf.work()
      await working.stop()
      await hf.close()
    }),
})

deploying(
  'a worker writes the schedules that its kinds declare, under the name of the kind',
  async ({ deploy, hf }) => {
    await deploy(nightly(declared))
    expect(await hf.schedules.get('nightly')).toMatchObject({
      kind: 'nightly',
      input,
      cron: '0 3 * * *',
      tz: 'Europe/Berlin',
      isDeclared: true,
      isEdited: false,
    })
  },
)

deploying(
  'what was changed at run time survives deploys, until the declaration itself changes',
  async ({ deploy, hf }) => {
    await deploy(nightly(declared))
    await hf.schedules.set('nightly', { kind: 'nightly', input, cron: '0 5 * * *' })
    await hf.schedules.pause('nightly', { reason: 'a holiday' })
    const { job } = await hf.schedules.trigger('nightly')
    await hf.schedules.backfill('nightly', { from: new Date('2026-03-01T00:00Z'), to: new Date('2026-03-03T00:00Z') })
    await deploy(nightly(declared))
    expect(await hf.schedules.get('nightly')).toMatchObject({
      cron: '0 5 * * *',
      state: 'paused',
      pauseReason: 'a holiday',
      isEdited: true,
    })
    expect((await hf.schedules.history('nightly')).map(({ what }) => what)).toEqual([
      'triggered',
      'backfilled',
      'backfilled',
    ])
    expect(await hf.get(job)).not.toBe(null)
    await deploy(nightly({ ...declared, cron: '0 4 * * *' }))
    expect(await hf.schedules.get('nightly')).toMatchObject({ cron: '0 4 * * *', isEdited: false, state: 'paused' })
  },
)

deploying(
  'a declared schedule that was removed at run time stays removed, until the declaration changes',
  async ({ deploy, hf }) => {
    await deploy(nightly(declared))
    await hf.schedules.remove('nightly')
    await deploy(nightly(declared))
    await expect(hf.schedules.get('nightly')).rejects.toMatchObject({ code: 'schedule_not_found' })
    expect(await hf.schedules.list()).toEqual([])
    await deploy(nightly({ ...declared, overlap: 'allow' }))
    expect(await hf.schedules.get('nightly')).toMatchObject({ overlap: 'allow', state: 'active' })
  },
)

deploying(
  'a schedule that is no longer declared is removed, unless it was changed at run time',
  async ({ deploy, hf }) => {
    const two = [
      { ...declared, name: 'first' },
      { ...declared, name: 'second' },
    ]
    await deploy(nightly(two))
    await hf.schedules.set('own', { kind: 'nightly', input, every: '1d' })
    await hf.schedules.set('second', { kind: 'nightly', input, every: '2d' })
    await deploy(nightly())
    expect((await hf.schedules.list()).map(({ name }) => name)).toEqual(['own', 'second'])
  },
)

deploying('a locked schedule does not keep a worker from starting', async ({ deploy, open, pool, hf }) => {
  await deploy(nightly(declared))
  const stranger = await pool.connect()
  await stranger.query('begin')
  await stranger.query('select from holdfast.schedule for update')
  await deploy(nightly(declared))
  const changed = await open({ jobs: [nightly({ ...declared, overlap: 'allow' })], statementTimeoutMs: 500 })
  const working = await changed.work()
  await stranger.query('rollback')
  stranger.release()
  await until(async () => (await hf.schedules.get('nightly')).overlap === 'allow')
  await working.stop()
})

deploying('a locked schedule does not keep others from being declared', async ({ open, pool, hf }) => {
  const two = (cron: string) => nightly(['first', 'second'].map((name) => ({ ...declared, cron, name })))
  const deploy = async (cron: string) => (await open({ jobs: [two(cron)] })).work()
  await (await deploy('0 3 * * *')).stop()
  const free = await strangerHolds(pool, `select from holdfast.schedule where name = 'first' for update`)
  const working = deploy('0 4 * * *')
  await until(async () => (await hf.schedules.get('second')).cron === '0 4 * * *', 'the free one is declared', 30_000)
  expect(await hf.schedules.get('first')).toMatchObject({ cron: '0 3 * * *' })
  await free()
  await until(async () => (await hf.schedules.get('first')).cron === '0 4 * * *', 'the locked one is declared', 30_000)
  await (await working).stop()
})

deploying('a deploy that changes a declaration decides the slots that are due', async ({ deploy, hf, query }) => {
  await deploy(nightly({ ...declared, missed: 'all' }))
  await query(`update holdfast.schedule set next_at = next_at - interval '2 days', due_at = now()`)
  await deploy(nightly({ every: '1d', input }))
  const slots = await hf.schedules.history('nightly')
  expect(slots.map(({ what }) => what)).toContain('submitted')
})

deploying('a declaration that cannot work is refused when the process connects', async ({ open }) => {
  const refused: [ScheduleDeclaration<{ day: string }>, string][] = [
    [{ cron: 'nightly', input }, 'must have 5 fields'],
    [{ cron: '0 3 * * *', input: { day: 3 as never } }, 'input'],
    [{ cron: '0 3 * * *', tz: 'Mars', input }, 'IANA'],
  ]
  for (const [schedule, words] of refused) {
    await expect(open({ jobs: [nightly(schedule)] })).rejects.toMatchObject({ code: 'kind_invalid' })
    await expect(open({ jobs: [nightly(schedule)] })).rejects.toThrow(words)
  }
  await expect(open({ jobs: [nightly([declared, declared])] })).rejects.toThrow('second schedule named "nightly"')
  expect(() => nightly({ ...declared, crom: '1' } as never)).toThrow('unknown option "crom"')
})
