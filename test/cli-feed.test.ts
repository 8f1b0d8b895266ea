import { defineJob } from 'holdfast'
import { onTestFinished } from 'vitest'
import { knownStages } from '#holdfast/cli/event-lines'
import { makeFeed } from '#holdfast/cli/feed'
import { expect, test, until } from './fixtures.ts'

const noop = defineJob('noop', { run: () => 'done' })
const many = (count: number) => Array.from({ length: count }, () => ({ input: null }))

/** A live view whose lines are kept. */
function view(hf: Parameters<typeof makeFeed>[0]['hf']) {
  const lines: string[] = []
  const onError = (error: unknown) => void lines.push(String(error))
  const feed = makeFeed({ hf, stagesOf: knownStages(hf), tell: (line) => void lines.push(line), onError })
  onTestFinished(() => feed.stop())
  return { feed, lines, ids: () => lines.map((line) => line.split(/ {2,}/)[2]) }
}

test('the live view begins with what happens after its start, each event on a line', async ({ hf }) => {
  await hf.submitMany(noop, many(3))
  const { feed, lines } = view(hf)
  await feed.start()
  const { id } = await hf.submit(noop, null)
  await until(() => lines.length > 0, 'a line')
  await hf.cancel(id, { reason: 'not needed' })
  await until(() => lines.length > 1, 'another line')
  expect(lines).toEqual([
    expect.stringMatching(new RegExp(`^\\d\\d:\\d\\d:\\d\\d\\.\\d{3} {2}noop {5}${id.slice(-8)} {2}submitted$`)),
    expect.stringMatching(new RegExp(`^[\\d:.]{12} {2}noop {5}${id.slice(-8)} {2}cancelled .* m?s .*not needed$`)),
  ])
})

test('what comes in too great a number is counted, and what follows is shown', async ({ hf }) => {
  const { feed, lines, ids } = view(hf)
  await hf.submit(noop, null)
  await feed.start()
  await hf.submitMany(noop, many(500))
  await until(() => lines.length > 0, 'a line')
  const { id } = await hf.submit(noop, null)
  await until(() => ids().includes(id.slice(-8)), 'the last one')
  expect(lines).toEqual([
    expect.stringMatching(/^… 50\d more events not shown$/),
    expect.stringContaining(id.slice(-8)),
  ])
})

test('a flush after the end tells what was left, each event once, in a log that was empty too', async ({ hf }) => {
  const { feed, lines, ids } = view(hf)
  await feed.start()
  const first = await hf.submit(noop, null)
  await feed.stop()
  await feed.flush()
  const second = await hf.submit(noop, null)
  await feed.flush()
  expect(ids()).toEqual([first, second].map(({ id }) => id.slice(-8)))
  await hf.submitMany(noop, many(205))
  await feed.flush()
  expect(lines.at(-1)).toBe('… 5 more events not shown')
  expect(lines).toHaveLength(203)
})

test('a live view whose connections are cut goes on where it was', async ({ hf, query }) => {
  const { feed, ids } = view(hf)
  await feed.start()
  const before = await hf.submit(noop, null)
  await until(() => ids().includes(before.id.slice(-8)), 'the first')
  await query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
  )
  const after = await until(() => hf.submit(noop, null).catch(() => null))
  await until(() => ids().includes(after.id.slice(-8)), 'the one behind the cut')
  expect(ids().filter((id) => id === before.id.slice(-8))).toHaveLength(1)
})
