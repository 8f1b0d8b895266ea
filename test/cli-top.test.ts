import { stripVTControlCharacters } from 'node:util'
import { defineJob } from 'holdfast'
import { ask, call, runOnTerminal } from './cli/command.ts'
import { expect, test, until } from './fixtures.ts'
import { makeWire } from './wire.ts'

const size = { columns: 120, rows: 40 }

test('one picture shows queues, workers, the leader, readers and webhooks', async ({ url, given, hf }) => {
  await given.queued({ queue: 'slow' })
  await given.queued({ queue: 'slow', delayMs: 60_000 })
  await given.running({ queue: 'busy' })
  await hf.pauseQueue('held')
  await hf.events.subscribe('mailer', { from: 'beginning' }, () => {})
  const { code, stdout } = await call(['top', '--once'], { env: { HOLDFAST_URL: url } })
  expect(stdout).toMatch(/^jobs {6}0\/s submitted, 0\/s finished, 0\/s failed$/m)
  expect(stdout).toMatch(/^leader {4}no leader yet: start a worker or `holdfast reap`$/m)
  expect(stdout).toMatch(/^orphans {3}none$/m)
  expect(stdout).toMatch(/^webhooks {2}0 pending, 0 dead$/m)
  expect(stdout).toMatch(/^QUEUE +DUE +SCHEDULED +RUNNING +WAITING +OLDEST +WORKERS +STATE$/m)
  expect(stdout).toMatch(/^busy +0 +0 +1 +0 +0$/m)
  expect(stdout).toMatch(/^held +0 +0 +0 +0 +0 +paused$/m)
  expect(stdout).toMatch(/^slow +1 +1 +0 +0 +\S+ \w+ +0 +no workers$/m)
  expect(stdout).toMatch(/^SESSION +HOST +PID +RUNNING/m)
  expect(stdout).toMatch(/^mailer +1 +/m)
  expect(stdout).not.toContain('\u001b')
  expect(code).toBe(0)
})

test('a worker runs no more than it may, what it claimed ahead is shown apart, and so are kinds that nobody serves', async ({
  given,
  hf,
  query,
  url,
}) => {
  const sessionId = await given.session()
  await query('update holdfast.session set concurrency = 3 where id = $1', [sessionId])
  for (let count = 0; count < 5; count++) await given.running({ sessionId })
  await hf.submit(defineJob('lonely', { run: () => null }), null)
  const { stdout } = await call(['top', '--once'], { env: { HOLDFAST_URL: url } })
  expect(stdout).toMatch(/^SESSION +HOST +PID +RUNNING +AHEAD +HEARTBEAT/m)
  expect(stdout).toMatch(/^\d+ +\S+ +\d+ +3\/3 +2 /m)
  expect(stdout).toMatch(/^KIND WITHOUT A WORKER +QUEUE +WAITING FOR\nlonely +default +\S/m)
})

test('for a program the picture is one JSON document', async ({ url, hf, given }) => {
  const lost = await given.attemptOfDeadSession()
  const reaping = await hf.reap()
  await until(async () => (await hf.get(lost.id))?.crashes === 1, 'the job is revived')
  const picture = await ask<Record<string, unknown>>(['top'], { env: { HOLDFAST_URL: url } })
  await reaping.stop()
  expect(picture).toMatchObject({
    at: expect.any(String),
    rates: { submitted: expect.any(Number), finished: 0, failed: 0 },
    queues: [{ name: lost.queue, queued: 1 }],
    sessions: [],
    recovery: { leader: { term: 1, isLive: true }, orphans: 0, revivals: [{ job: lost.id, type: 'job.revived' }] },
    groups: [],
    deliveries: { pending: 0, dead: 0, isCapped: false },
  })
})

test('on a terminal the picture is redrawn until q, through an outage of the database too', async ({ url, given }) => {
  const wire = await makeWire(url)
  await given.queued({ queue: 'first' })
  const top = runOnTerminal(['top'], size, { env: { HOLDFAST_URL: wire.url, HOLDFAST_STATEMENT_TIMEOUT_MS: '1000' } })
  const says = (pattern: RegExp) => until(() => pattern.test(stripVTControlCharacters(top.output())), String(pattern))
  await says(/holdfast top {2}postgres:/)
  await says(/first +1 +0 +0/)
  await given.queued({ queue: 'second' })
  await says(/second +1 +0 +0/)
  await says(/\d\/s submitted/)
  wire.stall()
  await says(/Retrying; this snapshot is .* old\./)
  wire.reconnect()
  await given.queued({ queue: 'third' })
  await says(/third +1 +0 +0/)
  expect(top.output()).toContain('\u001b[?1049h')
  expect(top.output()).toContain('\u001b[36m')
  top.type('q')
  expect(await top.exited).toBe(0)
  expect(top.output()).toContain('\u001b[?25h\u001b[?1049l')
})

test('a small terminal shows what fits, and Ctrl-C ends it', async ({ url, given }) => {
  for (const name of 'abcdefghij') await given.queued({ queue: name })
  const top = runOnTerminal(['top'], { columns: 60, rows: 10 }, { env: { HOLDFAST_URL: url } })
  const bottom = '…\u001b[K\u001b[J'
  await until(() => top.output().includes(bottom), 'the picture is cut')
  const shown = top.output().slice(0, top.output().indexOf(bottom))
  expect(shown.slice(shown.lastIndexOf('holdfast top')).split('\n')).toHaveLength(10)
  top.type('\u0003')
  expect(await top.exited).toBe(0)
})
