import { defineJob } from 'holdfast'
import { call } from './cli/command.ts'
import { expect, gate, test, until } from './fixtures.ts'

test('show draws a fan-out: its items by state, who is still at it, and what failed', async ({ open, url }) => {
  const held = gate()
  const report = defineJob('report', {
    stages: [
      { name: 'split', run: () => 4 },
      {
        name: 'pages',
        tolerate: { count: 1 },
        fanOut: () => ['one', 'two', 'three', 'four'],
        key: (page) => page,
        each: {
          retries: 0,
          run: async (_ctx, page) => {
            if (page === 'two') throw new Error('no \u001b[31mink\non the page')
            if (page === 'four') await held.promise
          },
        },
      },
      { name: 'bind', run: () => 'bound' },
    ],
  })
  const hf = await open({ jobs: [report] })
  await hf.work()
  const handle = await hf.submit(report, null)
  await until(async () => (await hf.fanOuts(handle.id))[0]?.running === 1, 'only the last page is at work')
  await until(async () => (await hf.get(handle.id))?.state === 'waiting', 'the parent waits')
  const env = { HOLDFAST_URL: url }
  // by the end of its id, although its items were submitted later
  const { stdout } = await call(['show', handle.id.slice(-8)], { env })
  expect(stdout).toContain('  split: done\n')
  expect(stdout).toMatch(
    / {2}pages: waiting\n {4}█{20}✗{10}▒{10} 3\/4: 2 succeeded, 1 failed, 1 running, .*\/s, about .* left/,
  )
  expect(stdout).toMatch(/ {4}running four: attempt 1 in session \d+, at most .* more\n/)
  expect(stdout).toContain('    failed two: no ink on the page\n')
  expect(stdout).toContain('  bind: pending\n')
  expect(stdout).toMatch(/fanned_out +pages 2\/3 +\d+ +\d+ +4 items/)
  const json = JSON.parse((await call(['show', handle.id, '--json'], { env })).stdout)
  expect(json.fanOuts).toMatchObject([
    {
      stage: 1,
      total: 4,
      succeeded: 2,
      failed: 1,
      running: 1,
      stragglers: [{ key: 'four', state: 'running', attempt: 1 }],
      failures: [{ key: 'two', error: { message: expect.stringContaining('ink') } }],
    },
  ])
  held.open()
  expect(await handle.result()).toMatchObject({ state: 'partial', output: 'bound' })
  const ended = (await call(['show', handle.id], { env })).stdout
  expect(ended).toMatch(/ {4}█{30}✗{10} 4\/4: 3 succeeded, 1 failed, in \d/)
})

test('jobs lists items only if asked', async ({ open, url }) => {
  const wide = defineJob('wide', { stages: [{ name: 'all', fanOut: () => [1, 2, 3], each: () => {} }] })
  const hf = await open({ jobs: [wide] })
  await hf.work()
  await (await hf.submit(wide, null)).result()
  const env = { HOLDFAST_URL: url }
  const lines = async (args: string[]) => JSON.parse((await call(['jobs', '--json', ...args], { env })).stdout).jobs
  expect(await lines([])).toHaveLength(1)
  expect(await lines(['--items'])).toHaveLength(4)
})
