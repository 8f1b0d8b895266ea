import { defineJob, type Holdfast } from 'holdfast'
import { describe, vi } from 'vitest'
import { ask, call, callEach, run } from './cli/command.ts'
import { expect, gate, test, until } from './fixtures.ts'

// each call is a process of its own, and other tests run beside
vi.setConfig({ testTimeout: 60_000 })

const noop = defineJob('noop', { run: () => 'done' })

interface Told {
  seq: number
  type: string
  tenant: string
  jobId: string
}

/** What a command says with --json, line by line. */
async function lines(args: string[], url: string): Promise<Told[]> {
  const { stdout, stderr, code } = await call([...args, '--json'], { env: { HOLDFAST_URL: url } })
  if (code !== 0) throw new Error(stderr)
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

/** A group that has parked the event of each job that was submitted for the tenant `bad`. */
async function parking(hf: Holdfast, group: string, bad: () => boolean): Promise<{ handled: number[] }> {
  const handled: number[] = []
  await hf.events.subscribe(group, { types: 'job.*', from: 'beginning', failures: 1, backoffMs: 1 }, (event) => {
    if (event.tenant === 'bad' && bad()) throw new Error('no \u001b[31mstock\nleft')
    handled.push(event.seq)
  })
  return { handled }
}

describe('groups', () => {
  test('groups are listed with what they read, how far behind they are, and who reads', async ({ open, url }) => {
    const env = { HOLDFAST_URL: url }
    expect((await call(['events', 'groups'], { env })).stdout).toMatch(/^No group reads the log\./)
    const [left, stays] = [await open(), await open()]
    await left.events.subscribe('orphaned', { types: 'job.failed', partitions: 2 }, () => {})
    await left.close()
    await stays.events.subscribe('orders', {}, () => {})
    await stays.submit(noop, null)
    await until(async () => (await stays.events.groups()).some(({ name, behind }) => name === 'orders' && behind === 0))
    const { stdout, code } = await call(['events', 'groups'], { env })
    expect(code).toBe(0)
    expect(stdout).toMatch(/^NAME +TYPES +PARTITIONS +READERS +BEHIND +OLDEST +PARKED +FAILING\n/)
    expect(stdout).toMatch(/^orders +all +1 +1 +0 +0$/m)
    expect(stdout).toMatch(/^orphaned +job\.failed +2 +0 +1 +\d+(\.\d)? m?s +0$/m)
    expect(stdout).toContain('\norphaned has no active reader: start a process that subscribes to it.\n')
    expect(stdout).not.toContain('orders has no active reader')
    expect(await ask(['events', 'groups'], { env })).toMatchObject({
      groups: [
        { name: 'orders', types: null, partitions: 1, readers: 1, behind: 0, parked: 0, failing: [] },
        { name: 'orphaned', types: ['job.failed'], partitions: 2, readers: 0, behind: 1 },
      ],
    })
  })

  test('a group that fails at an event says where and why', async ({ hf, url }) => {
    const failed = gate()
    await hf.events.subscribe('orders', { from: 'beginning', failures: 100, backoffMs: 60_000 }, () => {
      failed.open()
      throw new Error('no stock left')
    })
    await hf.submit(noop, null)
    await failed.promise
    const [group] = await until(async () => {
      const groups = await hf.events.groups()
      return groups[0]?.failing.length === 1 && groups
    })
    const { stdout } = await call(['events', 'groups'], { env: { HOLDFAST_URL: url } })
    expect(stdout).toContain(`\norders failed once at event ${group?.failing[0]?.seq}: no stock left\n`)
  })
})

describe('tail and listen', () => {
  test('tail shows the latest events, chosen by number, type, tenant and job', async ({ hf, url }) => {
    expect((await call(['events', 'tail'], { env: { HOLDFAST_URL: url } })).stdout).toBe('No events match.\n')
    const handles = await hf.submitMany(
      noop,
      ['a', 'b', 'b', 'c'].map((tenant) => ({ input: null, tenant })),
    )
    const [first, , third] = handles
    await hf.cancel(third?.id ?? '', { reason: 'not needed' })
    const all = await lines(['events', 'tail'], url)
    expect(all.map(({ type }) => type)).toEqual([...Array(4).fill('job.submitted'), 'job.cancelled'])
    expect(all).toMatchObject([{ jobId: first?.id, tenant: 'a' }, {}, {}, {}, { jobId: third?.id }])
    expect(await lines(['events', 'tail', '-n', '2'], url)).toEqual(all.slice(-2))
    // the number counts what was asked for, not what lies between
    expect(await lines(['events', 'tail', '-n', '1', '--tenant', 'a'], url)).toEqual(all.slice(0, 1))
    expect(await lines(['events', 'tail', '--types', 'job.cancelled,job.failed'], url)).toEqual(all.slice(-1))
    expect(await lines(['events', 'tail', '--job', third?.id.slice(-8) ?? ''], url)).toHaveLength(2)
    const { stdout, stderr } = await call(['events', 'tail', '-n', '1'], { env: { HOLDFAST_URL: url } })
    expect(stdout).toMatch(
      new RegExp(
        `^${all[4]?.seq} +\\d\\d:\\d\\d:\\d\\d\\.\\d{3} +noop +${third?.id.slice(-8)} +cancelled .*not needed\n$`,
      ),
    )
    expect(stderr).toBe('')
  })

  test('tail --follow goes on with what comes, until Ctrl-C', async ({ hf, url }) => {
    const before = await hf.submit(noop, null)
    const tail = run(['events', 'tail', '--follow'], { env: { HOLDFAST_URL: url } })
    await tail.says(new RegExp(`${before.id.slice(-8)} +submitted`))
    const after = await hf.submit(noop, null)
    await tail.says(new RegExp(`${after.id.slice(-8)} +submitted`))
    tail.signalGroup('SIGINT')
    expect(await tail.exited).toBe(0)
  })

  test('listen shows what comes and nothing before it, and goes on when its connections are cut', async ({
    hf,
    url,
    query,
  }) => {
    const before = await hf.submit(noop, null, { tenant: 'mine' })
    const args = ['events', 'listen', '--tenant', 'mine', '--types', 'job.*']
    const listeners = [args, [...args, '--json']].map((one) => run(one, { env: { HOLDFAST_URL: url } }))
    for (const one of listeners) await one.says(/Listening\. Press Ctrl-C to stop\./)
    await hf.submit(noop, null, { tenant: 'other' })
    const after = await hf.submit(noop, null, { tenant: 'mine' })
    const [table, json] = listeners
    await table?.says(new RegExp(`${after.id.slice(-8)} +submitted`))
    const [line = ''] = (await json?.says(/^\{.*\}$/m)) ?? []
    expect(JSON.parse(line)).toMatchObject({ type: 'job.submitted', jobId: after.id, tenant: 'mine' })
    await query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    )
    const later = await until(() => hf.submit(noop, null, { tenant: 'mine' }).catch(() => null))
    await table?.says(new RegExp(`${later.id.slice(-8)} +submitted`))
    await json?.says(new RegExp(`"jobId":"${later.id}"`))
    for (const one of listeners) one.signalGroup('SIGINT')
    expect(await Promise.all(listeners.map(({ exited }) => exited))).toEqual([0, 0])
    for (const one of listeners) expect(one.output()).not.toContain(before.id.slice(-8))
  })
})

describe('parked, replay and forget', () => {
  test('parked events are listed, and replayed one by one or all at once', async ({ hf, url }) => {
    const env = { HOLDFAST_URL: url }
    let isBad = true
    await hf.submitMany(
      noop,
      ['good', 'bad', 'bad', 'bad'].map((tenant) => ({ input: null, tenant })),
    )
    const { handled } = await parking(hf, 'orders', () => isBad)
    const parked = await until(async () => {
      const all = await hf.events.parked('orders')
      return all.length === 3 && all
    })
    const [first, ...others] = parked.map(({ event }) => event.seq)
    const { stdout } = await call(['events', 'parked', 'orders', '-n', '2'], { env })
    expect(stdout).toMatch(/^SEQ +EVENT +KIND +JOB +FAILURES +PARKED +REPLAY +ERROR\n/)
    expect(stdout).toMatch(new RegExp(`^${first} +job\\.submitted +noop +[0-9a-f]{8} +1 .* no stock left$`, 'm'))
    expect(stdout).toContain(`More: holdfast events parked orders --after ${others[0]}\n`)
    expect(await ask(['events', 'parked', 'orders', '--after', String(others[0])], { env })).toMatchObject({
      parked: [{ event: { seq: others[1], tenant: 'bad' }, failures: 1 }],
      next: null,
    })
    isBad = false
    const one = await call(['events', 'replay', 'orders', '--parked', String(first)], { env })
    expect(one.stdout).toBe('orders replays 1 parked event.\n')
    await until(() => handled.includes(first ?? 0), 'the first one')
    await until(async () => (await hf.events.parked('orders')).length === 2)
    expect(await ask(['events', 'replay', 'orders', '--parked'], { env })).toEqual({ group: 'orders', events: 2 })
    await until(() => others.every((seq) => handled.includes(seq)), 'the others')
    await until(async () => (await hf.events.parked('orders')).length === 0)
    expect((await call(['events', 'parked', 'orders'], { env })).stdout).toBe('orders has no parked events.\n')
    expect((await call(['events', 'replay', 'orders', '--parked', 'all'], { env })).stdout).toBe(
      'orders has no parked events.\n',
    )
  })

  test('a group is sent to the beginning, to a moment, to an event, or to now', async ({ hf, url }) => {
    const env = { HOLDFAST_URL: url }
    const { handled } = await parking(hf, 'orders', () => false)
    await hf.submitMany(
      noop,
      Array.from({ length: 3 }, () => ({ input: null })),
    )
    await until(() => handled.length === 3)
    const [first, second, third] = handled
    expect((await call(['events', 'replay', 'orders', '--from', 'beginning'], { env })).stdout).toBe(
      'orders will read from the beginning, in 1 partition.\n',
    )
    await until(() => handled.length === 6)
    expect(await ask(['events', 'replay', 'orders', '--from', String(second)], { env })).toEqual({
      group: 'orders',
      partitions: 1,
    })
    await until(() => handled.length === 8)
    expect((await call(['events', 'replay', 'orders', '--from', '2001-01-31T08:00:00Z'], { env })).code).toBe(0)
    await until(() => handled.length === 11)
    expect((await call(['events', 'replay', 'orders', '--from', 'now'], { env })).code).toBe(0)
    await hf.submit(noop, null)
    await until(() => handled.length === 12)
    const round = [first, second, third]
    expect(handled.slice(0, 11)).toEqual([...round, ...round, second, third, ...round])
  })

  test('a group is forgotten only by those who say --yes', async ({ open, hf, url }) => {
    const env = { HOLDFAST_URL: url }
    const reader = await open()
    for (const name of ['one', 'two']) await reader.events.subscribe(name, {}, () => {})
    await reader.close()
    expect(await call(['events', 'forget', 'one'], { env })).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(
        /^error option_invalid: This permanently deletes the group one, .* Pass --yes to confirm\.\n$/,
      ),
    })
    expect(await hf.events.groups()).toHaveLength(2)
    expect((await call(['events', 'forget', 'one', '--yes'], { env })).stdout).toBe('Deleted the group one.\n')
    expect(await ask(['events', 'forget', 'two', '--yes'], { env })).toEqual({ forgotten: 'two' })
    expect(await hf.events.groups()).toEqual([])
  })
})

describe('wrong use', () => {
  const wrong: [name: string, args: string[], code: number, says: RegExp][] = [
    ['an unknown command', ['groops'], 2, /^error option_invalid: Unknown command 'groops' \(Did you mean groups\?\)/],
    ['no command', [], 2, /^Usage: holdfast events /],
    ['an unknown type', ['tail', '--types', 'job.fail'], 2, /^error event_type_unknown: There is no event type "job/],
    ['an unknown type to listen to', ['listen', '--types', 'x'], 2, /^error event_type_unknown: .*"x"/],
    ['a job that is none', ['tail', '--job', 'x'], 2, /^error id_invalid: "x" is not a job id/],
    ['a word for a number', ['tail', '-n', 'many'], 2, /--number takes a whole number, not "many"/],
    ['the parked of no group', ['parked', 'none'], 1, /^error group_not_found: There is no group "none"\./],
    ['a name that is none', ['parked', 'a b'], 2, /^error group_invalid: "a b" is not a valid group name/],
    ['nothing to replay', ['replay', 'x'], 2, /Choose what to replay: either --parked \[seq\] or --from <place>\./],
    ['two things to replay', ['replay', 'x', '--parked', '--from', 'now'], 2, /Choose what to replay/],
    ['a place that is none', ['replay', 'x', '--from', 'noon'], 2, /--from takes beginning, now, a timestamp such/],
    ['a parked event that is none', ['replay', 'x', '--parked', 'one'], 2, /--parked takes a whole number, not "one"/],
    ['a replay by no group', ['replay', 'none', '--parked'], 1, /^error group_not_found: There is no group "none"\./],
    ['to forget no group', ['forget', 'none', '--yes'], 1, /^error group_not_found: There is no group "none"\./],
    ['to forget ours', ['forget', 'webhooks', '--yes'], 2, /^error group_invalid: The group name webhooks is reserved/],
  ]
  test('what is wrong is refused with a sentence', async ({ url }) => {
    const answers = await callEach(
      wrong.map(([, args]) => ['events', ...args]),
      { env: { HOLDFAST_URL: url } },
    )
    for (const [index, [name, , code, says]] of wrong.entries()) {
      expect(answers[index]?.stderr, name).toMatch(says)
      expect(answers[index], name).toMatchObject({ code, stdout: '' })
    }
  })

  test('an event that a group has not parked cannot be replayed, as JSON too', async ({ hf, url }) => {
    await hf.events.subscribe('orders', {}, () => {})
    const { code, stdout, stderr } = await call(['events', 'replay', 'orders', '--parked', '7', '--json'], {
      env: { HOLDFAST_URL: url },
    })
    expect(JSON.parse(stderr).error.message).toContain('The group orders has not parked event 7;')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })
})
