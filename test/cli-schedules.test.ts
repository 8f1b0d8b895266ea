import { defineJob } from 'holdfast'
import { callEach } from './cli/command.ts'
import { expect, test } from './fixtures.ts'

const report = defineJob('report', { run: () => {} })

test('the command line sets, shows, changes and removes schedules', async ({ url, open }) => {
  const hf = await open({ jobs: [report] })
  await (await hf.work()).stop()
  const to = (...words: string[]) => ['schedules', ...words, '--url', url]
  const [set, list, show, pause, resume, trigger, backfill, history, preview, remove, gone, bad] = await callEach([
    to('set', 'nightly', 'report', '{"day":1}', '--cron', '0 3 * * *', '--tz', 'Europe/Berlin', '--json'),
    to('list'),
    to('show', 'nightly'),
    to('pause', 'nightly', '--reason', 'a holiday', '--json'),
    to('resume', 'nightly'),
    to('trigger', 'nightly', '--json'),
    to('backfill', 'nightly', '--from', '2026-03-01', '--to', '2026-03-03', '--json'),
    to('history', 'nightly'),
    to('preview', '--cron', '30 2 * * *', '--tz', 'Europe/Berlin', '-n', '2', '--json'),
    to('remove', 'nightly', '--json'),
    to('show', 'nightly'),
    to('set', 'bad', 'report', '--cron', 'nonsense'),
  ])
  expect(JSON.parse(set?.stdout as string).schedule).toMatchObject({
    name: 'nightly',
    input: { day: 1 },
    cron: '0 3 * * *',
  })
  expect(list?.stdout).toMatch(/NAME +TENANT +KIND +RUNS +STATE +NEXT/)
  expect(list?.stdout).toMatch(/nightly +default +report +0 3 \* \* \* \(Europe\/Berlin\) +active +\d{4}-/)
  expect(show?.stdout).toContain('No slots yet.')
  expect(JSON.parse(pause?.stdout as string).schedule).toMatchObject({ state: 'paused', pauseReason: 'a holiday' })
  expect(resume?.stdout).toContain('resumed; next')
  const { job } = JSON.parse(trigger?.stdout as string)
  expect(JSON.parse(backfill?.stdout as string)).toEqual({ submitted: 2, existing: 0 })
  expect(history?.stdout).toContain(job)
  expect(history?.stdout).toMatch(/backfilled/)
  expect(JSON.parse(preview?.stdout as string).slots).toHaveLength(2)
  expect(JSON.parse(remove?.stdout as string)).toEqual({ removed: 'nightly' })
  expect([gone?.code, bad?.code]).toEqual([1, 1])
  expect(gone?.stderr).toContain('has no schedule named "nightly"')
  expect(bad?.stderr).toContain('must have 5 fields')
  const why = await hf.why(job)
  expect(why.facts.scheduled).toMatchObject({ schedule: 'nightly', what: 'triggered' })
})
