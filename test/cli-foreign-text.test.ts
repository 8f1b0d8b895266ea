import { defineJob, PermanentError } from 'holdfast'
import { call, callEach, runOnTerminal } from './cli/command.ts'
import { expect, test } from './fixtures.ts'

/** A title for the window, a cleared screen, a C1 control, text from right to left. */
const hostile = '\u001b]0;owned\u0007\u001b[2J\u009b31mred\u202egnp.exe\u2066\u200f'
// biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
const steering = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/

const echo = defineJob('echo', {
  run: ({ input, log, progress }) => {
    log(hostile, { [hostile]: hostile })
    progress(1, 2, hostile)
    return { [hostile]: input }
  },
})
const breaks = defineJob('breaks', {
  retries: 0,
  run: () => {
    throw new PermanentError(hostile)
  },
})

test('no command prints what steers a terminal, wherever it comes from', async ({ open, url }) => {
  const hf = await open({ jobs: [echo, breaks] })
  await hf.work()
  const how = { meta: { [hostile]: hostile }, key: hostile }
  const good = await hf.submit(echo, { text: hostile } as never, how)
  const bad = await hf.submit(breaks, { text: hostile } as never, { meta: { note: hostile } })
  await Promise.allSettled([good.result(), bad.result()])
  const input = JSON.stringify({ text: hostile })
  const lines = [good.id, bad.id].flatMap((id) => [
    ['show', id],
    ['why', id],
    ['why', id, '--json'],
    ['show', id, '--json'],
  ])
  const others = ['jobs', 'jobs --json', 'events tail', 'events tail --json', 'top --once'].map((line) =>
    line.split(' '),
  )
  const submits = [
    ['submit', 'echo', input, '--wait', '10s'],
    ['submit', 'breaks', input, '--wait', '10s'],
    ['submit', 'echo', input, '--wait', '10s', '--json'],
    ['submit', hostile],
    ['jobs', `--${hostile}`],
  ]
  const all = [...lines, ...others, ...submits]
  const told = await callEach(all, { env: { HOLDFAST_URL: url } })
  for (const [index, { stdout, stderr }] of told.entries())
    expect(`${stdout}${stderr}`, all[index]?.slice(0, 2).join(' ')).not.toMatch(steering)
  const shown = told[all.findIndex(([name, id, json]) => name === 'show' && id === good.id && json === '--json')]
  expect(JSON.parse(shown?.stdout as string).job).toMatchObject({
    input: { text: hostile },
    meta: { [hostile]: hostile },
  })
}, 60_000)

test('on a terminal our own colors are shown, and those of foreign text are not', async ({ open, url }) => {
  const hf = await open({ jobs: [echo] })
  const { id } = await hf.submit(echo, { text: `\u001b[31m${hostile}` } as never)
  const shown = runOnTerminal(['show', id], { columns: 200, rows: 50 }, { env: { HOLDFAST_URL: url } })
  await shown.exited
  const output = shown.output()
  expect(output).toContain('\u001b[1mjob')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: our own colors
  expect(output.replaceAll(/\u001b\[\d{1,2}m/g, '').replaceAll('\r\n', '\n')).not.toMatch(steering)
  expect(output).toContain('\\u001b[31m')
})

const urls = [
  'postgres://me:s3cret@127.0.0.1:1/jobs',
  'postgres://me:s3@cret@127.0.0.1:1/jobs',
  'postgres://me:s3/cret@127.0.0.1:1/jobs',
  'postgres://me:12?cret@127.0.0.1:1/jobs',
  'postgres://127.0.0.1:1/jobs?user=me&password=s3cret',
  'me:s3cret@127.0.0.1:1/jobs',
  '127.0.0.1:1/jobs?password=s3cret',
  'host=127.0.0.1 port=1 password=s3cret',
]

test.for(urls)('the password of %s appears in no output', async (url) => {
  const commands = ['jobs', 'jobs --json', 'jobs --verbose', 'migrate', 'top --once', 'audit'].map((line) =>
    line.split(' '),
  )
  const glued = [
    ['jobs', `--url${url}`],
    ['jobs', url],
  ]
  const [told, one] = await Promise.all([
    callEach([...commands, ...glued], { env: { HOLDFAST_URL: url, HOLDFAST_LOG_LEVEL: 'trace' } }),
    call(['serve', '--http-port', '99999', '--url', url]),
  ])
  for (const { stdout, stderr } of [...told, one]) expect(`${stdout}${stderr}`).not.toMatch(/s3|cret/)
})
