import { invariants } from '#holdfast/audit/audit'
import { readConfig } from '#holdfast/config/config'
import { envNameOf, type SettingName } from '#holdfast/config/settings'
import { boundOf, ladder } from '#holdfast/reaper/recovery-bound'
import { ask, call, library, moduleOf, run, runOnTerminal } from './cli/command.ts'
import { swift } from './crash/member.ts'
import { expect, newDatabase, test, until } from './fixtures.ts'
import { transaction } from './hold.ts'
import { expire, plain } from './owned.ts'

const { logLevel: _quiet, ...timing } = swift
const env = (url: string) => ({
  HOLDFAST_URL: url,
  ...Object.fromEntries(Object.entries(timing).map(([name, value]) => [envNameOf(name as SettingName), String(value)])),
})

test('reap --explain prints the ladder from the settings, without a database', async () => {
  const { code, stdout } = await call(['reap', '--explain'])
  expect(code).toBe(0)
  expect(stdout).toContain('is recovered within 17 s')
  expect(stdout).toContain('for up to 1,000 jobs lost at once')
  for (const { rung, made, when } of ladder(readConfig({}, {}))) {
    const line = stdout.split('\n').find((one) => one.startsWith(rung))
    expect(line).toContain(made)
    expect(line).toContain(when)
  }
  expect(stdout).toMatch(/lock gone +4\.8 s/)
  expect(stdout).toMatch(/deadline passed +timeout \+ 14 s/)
  expect(stdout).toContain('leaseMs 15000')
})

test('reap --explain --json says the same to a program, under the settings that it is given', async () => {
  const told = await ask<{ boundMs: number; ladder: unknown; settings: object }>([
    'reap',
    '--explain',
    '--lease-ms',
    '30000',
  ])
  const config = readConfig({ leaseMs: 30_000 }, {})
  expect(told).toMatchObject({
    boundMs: boundOf(config),
    ladder: ladder(config),
    settings: { leaseMs: 30_000, sweepMs: 250 },
  })
})

test('reap refuses settings that do not fit each other', async () => {
  const { code, stderr } = await call([
    'reap',
    '--leader-renew-ms',
    '2000',
    '--url',
    'postgres://nobody@127.0.0.1:1/none',
  ])
  expect(stderr).toMatch(/config_invalid: The setting leaderRenewMs must be less than leaderLeaseMs/)
  expect(code).toBe(2)
})

test('reap revives what a dead worker left behind, until it is asked to stop', async ({ url, given, hf, query }) => {
  const reaper = run(['reap'], { env: env(url) })
  await reaper.says(/lease ran out +4\.5 s/)
  await reaper.says(/"msg":"became leader"/)
  const orphan = await given.attemptOfDeadSession()
  await until(async () => (await hf.get(orphan.id))?.state === 'queued', 'the orphan is revived')
  await reaper.says(/"msg":"revived"/)
  reaper.signal('SIGTERM')
  expect(await reaper.exited).toBe(0)
  expect(reaper.output()).toContain('Stopped.')
  expect(await query('select lease_until > now() as leads from holdfast.leader')).toEqual([{ leads: false }])
})

const owning = `
  export const owners = {
    ext: {
      read: async () => 'running',
      markFailed: async (execution) => { process.stderr.write('MARKED ' + execution + '\\n'); return 'done' },
    },
  }`

test('reap and work take owners from a module, and ask them about barriers that expired', async ({
  url,
  hf,
  query,
}) => {
  const jobs = `import { defineJob } from '${library}'
    export const nothing = defineJob('nothing', { run() {} })`
  const commands = [
    ['reap', '--owners-module', await moduleOf(owning, 'owners.mjs')],
    ['work', await moduleOf(jobs + owning), '--processes', '1'],
  ]
  for (const [index, args] of commands.entries()) {
    const command = run(args, { env: env(url) })
    await hf.barrier.open({
      ...plain,
      id: `run-${index}`,
      tenant: 'acme',
      expires: 3_600_000,
      owner: { name: 'ext', execution: `exec-${index}` },
    })
    await expire(query, `run-${index}`)
    await command.says(new RegExp(`MARKED exec-${index}`))
    await until(async () => (await hf.barrier.get(`run-${index}`)) === null, 'the barrier is removed')
    command.signal('SIGTERM')
    expect(await command.exited).toBe(0)
  }
})

test('a module without owners, or with something that is none, is refused by name', async ({ url }) => {
  for (const [code, why] of [
    ['export const other = 1', 'exports no `owners`'],
    ['export const owners = { ext: { read() {} } }', 'owners.ext is not an owner'],
  ] as const) {
    const { code: exit, stderr } = await call(['reap', '--url', url, '--owners-module', await moduleOf(code)])
    expect(stderr).toContain('module_invalid')
    expect(stderr).toContain(why)
    expect(exit).not.toBe(0)
  }
})

test('a reaper that was killed is followed by the next', async ({ url, given, hf }) => {
  const first = run(['reap'], { env: env(url) })
  await first.says(/"msg":"became leader"/)
  const second = run(['reap'], { env: env(url) })
  await second.says(/Reaper started/)
  first.signal('SIGKILL')
  await first.exited
  await second.says(/"term":2,"msg":"became leader"/)
  const orphan = await given.attemptOfDeadSession()
  await until(async () => (await hf.get(orphan.id))?.state === 'queued', 'the orphan is revived')
})

test('work prints the ladder at start', async ({ url }) => {
  const module = await moduleOf(`
    import { defineJob } from '${library}'
    export const nothing = defineJob('nothing', { run() {} })`)
  const working = run(['work', module, '--processes', '1'], { env: { HOLDFAST_URL: url } })
  await working.says(/A job that loses its worker is recovered within:/)
  await working.says(/lock gone +4\.8 s/)
  working.signal('SIGTERM')
  expect(await working.exited).toBe(0)
})

test('audit lists every invariant, and ends with code 0 while all hold', async ({ url, given }) => {
  await given.finished()
  const { code, stdout } = await call(['audit'], { env: { HOLDFAST_URL: url } })
  expect(stdout.match(/^✓ /gm)).toHaveLength(invariants.length)
  expect(stdout).toMatch(/^✓ one-final-settle$/m)
  expect(stdout).toMatch(
    new RegExp(
      `All ${invariants.length} invariants hold: 0 live and 1 finished jobs with \\d+ events, read in .*\\.\\n$`,
    ),
  )
  expect(code).toBe(0)
})

test('audit names each violation with examples, and ends with code 1', async ({ url, given, query }) => {
  const jobs = await Promise.all(Array.from({ length: 7 }, () => given.queued({ meta: {} })))
  await query('delete from holdfast.job_payload')
  const { code, stdout } = await call(['audit'], { env: { HOLDFAST_URL: url } })
  expect(code).toBe(1)
  expect(stdout).toMatch(/^✗ job-has-payload: 7 rows break it\n( {4}\S+ has lost its input\n){5} {4}and 2 more$/m)
  expect(stdout).toContain(`1 of ${invariants.length} invariants are broken`)
  const told = await ask<{
    violations: { invariant: string; total: number; examples: unknown[] }[]
    checked: string[]
  }>(['audit', '--all'], { env: { HOLDFAST_URL: url } })
  expect(told.violations).toMatchObject([{ invariant: 'job-has-payload', total: 7 }])
  expect(told.violations[0]?.examples).toHaveLength(jobs.length)
  expect(told.checked).toHaveLength(invariants.length)
})

test('on a terminal audit says which check is under way, and then which took too long', async ({ url }) => {
  const stranger = await transaction(url)
  await stranger.query('lock table holdfast.job_payload in access exclusive mode')
  const audit = runOnTerminal(['audit', '--budget', '1', '--url', url], { columns: 120, rows: 40 })
  await audit.says(new RegExp(`checking job-has-payload \\(\\d+ of ${invariants.length}\\)`))
  await audit.says(/\?.*job-has-payload.*: check timed out; allow more time with --budget/)
  expect(await audit.exited).toBe(1)
})

test('audit of a database that has no schema says what to do', async () => {
  const empty = await newDatabase('empty')
  const { code, stderr } = await call(['audit'], { env: { HOLDFAST_URL: empty.url } })
  await empty.drop()
  expect(stderr).toMatch(/^error schema_missing: .*Run `holdfast migrate`/)
  expect(code).toBe(1)
})
