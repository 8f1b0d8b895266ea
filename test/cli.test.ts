import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { defineJob } from 'holdfast'
import { describe } from 'vitest'
import { envNameOf, flagOf, settingNames } from '#holdfast/config/settings'
import { ask, call, library, moduleOf, newFolder, removeFolder } from './cli/command.ts'
import { expect, newDatabase, test } from './fixtures.ts'

const commands =
  'dev work reap migrate submit jobs show top cancel redo signal events webhooks schedules audit prove bench'.split(' ')
const nested = {
  events: ['groups', 'tail', 'listen', 'parked', 'replay', 'forget'],
  schedules: ['set', 'list', 'show', 'preview', 'history', 'pause', 'resume', 'trigger', 'backfill', 'remove'],
  webhooks: ['add', 'list', 'show', 'update', 'rotate', 'enable', 'disable', 'remove', 'test', 'deliveries', 'replay'],
}
const noJob = '01890a5d-ac96-774b-bcce-b302099a8057'

const echo = defineJob('echo', { queue: 'loud', priority: 3, run: ({ input }: { input: unknown }) => input })

describe('help', () => {
  test('help names every command, and every command teaches by example', async () => {
    const { code, stdout } = await call(['--help'])
    expect(code).toBe(0)
    const helps = await Promise.all(commands.map((name) => call([name, '--help'])))
    for (const [index, name] of commands.entries()) {
      expect(stdout).toContain(`  ${name} `)
      expect(helps[index]?.stdout).toMatch(/Examples:\n {2}\$ /)
      expect(helps[index]?.code).toBe(0)
    }
    expect(stdout).not.toContain('work-child')
  })

  test('the help of a group of commands names each of them, and each teaches by example', async () => {
    for (const [group, names] of Object.entries(nested)) {
      const { stdout } = await call([group, '--help'])
      const helps = await Promise.all(names.map((name) => call([group, name, '--help'])))
      for (const [index, name] of names.entries()) {
        expect(stdout).toContain(`  ${name} `)
        expect(helps[index]?.stdout).toMatch(/Examples:\n {2}\$ holdfast /)
      }
    }
  }, 60_000)

  test('work has a flag for every setting, with the name of its environment variable', async () => {
    const { stdout } = await call(['work', '--help-all'])
    const words = stdout.replace(/\s+/g, ' ')
    for (const name of settingNames) {
      expect(words).toContain(`${flagOf(name)} `)
      expect(words).toContain(`env: ${envNameOf(name)})`)
    }
  })

  test('help is short: the settings that people set first, and the rest under --help-all', async () => {
    for (const name of ['dev', 'work', 'serve', 'reap', 'audit', 'submit']) {
      const { stdout } = await call([name, '--help'])
      expect(stdout.split('\n').length, name).toBeLessThan(60)
      expect(stdout).toContain('--url <text>')
    }
    const { stdout, code } = await call(['dev', '--help-all'])
    expect(code).toBe(0)
    expect(stdout).toContain('--heartbeat-ms')
    expect((await call(['dev', '--help'])).stdout).not.toContain('--heartbeat-ms')
    const shown = async (command: string) => [
      ...(await call([command, '--help'])).stdout.matchAll(/^ {2}(--[\w-]+) .*$/gm),
    ]
    const work = (await shown('work')).map(([, flag]) => flag)
    expect(work).toEqual(expect.arrayContaining(['--processes', '--drain-ms', '--health-port']))
    expect(work).not.toContain('--http-port')
    const serve = (await shown('serve')).map(([, flag]) => flag)
    expect(serve).toEqual(expect.arrayContaining(['--http-host', '--http-port', '--health-port']))
    for (const flag of ['--processes', '--concurrency', '--queues']) expect(serve).not.toContain(flag)
  }, 60_000)

  test('without a command, help is shown', async () => {
    expect(await call([])).toMatchObject({ code: 0, stdout: expect.stringContaining('Usage: holdfast'), stderr: '' })
  })
})

describe('wrong use', () => {
  const wrong: [name: string, args: string[], says: RegExp][] = [
    ['an unknown command', ['jbos'], /^error option_invalid: Unknown command 'jbos' \(Did you mean jobs\?\)/],
    ['an unknown flag', ['jobs', '--jsn'], /Unknown option '--jsn' \(Did you mean --json\?\)/],
    ['a missing argument', ['submit'], /Missing required argument 'kind'\./],
    ['a word for a number', ['jobs', '--limit', 'many'], /--limit takes a whole number, not "many"/],
    ['a state that is none', ['jobs', '--state', 'faild'], /"faild" is not a job state; did you mean failed\?/],
    [
      'a setting out of range',
      ['work', 'x', '--processes', '0'],
      /config_invalid: The setting processes must be a whole/,
    ],
    ['two settings at odds', ['work', 'x', '--lease-ms', '1000'], /lostAfterMs must be less than leaseMs/],
    ['a length that is none', ['submit', 'x', '--delay', 'soon'], /--delay takes a duration such as/],
    ['a moment that is none', ['submit', 'x', '--run-at', 'noon'], /--run-at takes a timestamp such as/],
    ['a beginning that is none', ['jobs', '--since', 'monday'], /--since takes a timestamp such as/],
    ['input that is no JSON', ['submit', 'x', '{a:1}'], /The input from the argument is not valid JSON: .*Quote it/],
    ['an input file that is not there', ['submit', 'x', '@none.json'], /The input file none.json could not be read/],
  ]
  test.for(wrong)('%s is refused with a sentence and code 2', async ([, args, says]) => {
    const { code, stdout, stderr } = await call(args, { env: { HOLDFAST_URL: 'postgres://nobody@127.0.0.1:1/none' } })
    expect(stderr).toMatch(says)
    expect(stderr).not.toMatch(/\n\s+at /)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })

  test('with --json an error is JSON on standard error', async () => {
    const { code, stdout, stderr } = await call(['jobs', '--limit', 'x', '--json'])
    expect(JSON.parse(stderr)).toEqual({ error: { code: 'option_invalid', message: expect.stringMatching(/\.$/) } })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })

  test('a bad value in the environment is named by its variable', async () => {
    const { code, stderr } = await call(['jobs'], { env: { HOLDFAST_STATEMENT_TIMEOUT_MS: 'x' } })
    expect(stderr).toContain('statementTimeoutMs (from HOLDFAST_STATEMENT_TIMEOUT_MS)')
    expect(code).toBe(2)
  })
})

describe('the database', () => {
  test('where nothing runs, a sentence says how to start', async () => {
    const folder = await newFolder()
    const { code, stderr } = await call(['jobs'], { cwd: folder })
    expect(stderr).toMatch(
      /^error not_running: No database: set HOLDFAST_URL or --url to your Postgres\..*npm start.*--data-dir\.\n$/,
    )
    expect(code).toBe(1)
    await removeFolder(folder)
  })

  test('an unreachable database is named without its password', async () => {
    const { code, stderr } = await call(['jobs', '--url', 'postgres://me:secret@127.0.0.1:1/none'])
    expect(stderr).toMatch(
      /^error database_unreachable: Nothing is listening at postgres:\/\/me:\*\*\*@127\.0\.0\.1:1\/none/,
    )
    expect(stderr).not.toContain('secret')
    expect(code).toBe(1)
  })

  test('--verbose adds the stack of an error', async () => {
    const { stderr } = await call(['jobs', '--verbose', '--url', 'postgres://me:secret@127.0.0.1:1/none'])
    expect(stderr).toMatch(/\n\s+at /)
    expect(stderr).not.toContain('secret')
  })

  test('migrate says what is missing, applies it, and says what it applied', async () => {
    const { url, drop } = await newDatabase('empty')
    const env = { HOLDFAST_URL: url }
    expect((await call(['jobs'], { env })).stderr).toMatch(/error schema_missing: .*holdfast migrate/)
    const before = await call(['migrate', '--check', '--json'], { env })
    const missing: string[] = JSON.parse(before.stdout).missing
    expect({ code: before.code, first: missing[0] }).toEqual({ code: 1, first: '0001_schema.sql' })
    expect(await ask(['migrate'], { env })).toEqual({ applied: missing })
    expect(await call(['migrate', '--check'], { env })).toMatchObject({
      code: 0,
      stdout: 'The schema is up to date.\n',
    })
    expect(await ask(['migrate'], { env })).toEqual({ applied: [] })
    await drop()
  })
})

describe('submit', () => {
  test('an unknown kind is refused with the known ones and the likely one', async ({ open, url }) => {
    await (await open({ jobs: [echo] })).work()
    const { code, stderr } = await call(['submit', 'ehco'], { env: { HOLDFAST_URL: url } })
    expect(stderr).toContain('No kind is named "ehco"; did you mean echo? Workers have registered: echo.')
    expect(code).toBe(1)
  })

  test('a kind that a worker registered is submitted by name, with its queue and priority', async ({ open, url }) => {
    const hf = await open({ jobs: [echo] })
    await hf.work()
    const env = { HOLDFAST_URL: url }
    const input = { text: 'ünïcode 漢字' }
    const first = await ask<{ id: string }>(['submit', 'echo', '-', '--key', 'k', '--tenant', 't', '--wait', '10'], {
      env,
      stdin: JSON.stringify(input),
    })
    expect(first).toMatchObject({ kind: 'echo', isNew: true, result: { state: 'succeeded', output: input } })
    expect(await hf.get(first.id)).toMatchObject({ queue: 'loud', priority: 3, tenant: 't', input })
    const again = ['submit', 'echo', JSON.stringify(input), '--key', 'k', '--tenant', 't']
    expect(await ask(again, { env })).toEqual({ id: first.id, kind: 'echo', isNew: false })
    const other = await call(['submit', 'echo', '1', '--key', 'k', '--tenant', 't'], { env })
    expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('error key_conflict: ') })
  })

  test('with a module the input is checked before anything is written', async ({ hf, url }) => {
    const module = await moduleOf(`
      import { defineJob } from ${JSON.stringify(library)}
      const validate = (value) => (value?.n > 0 ? { value } : { issues: [{ message: 'must be positive', path: ['n'] }] })
      export const count = defineJob('count', { input: { '~standard': { version: 1, vendor: 'x', validate } }, run: () => 1 })
      setInterval(() => {}, 1000)`)
    const env = { HOLDFAST_URL: url }
    const bad = await call(['submit', 'count', '{"n":0}', '--module', module], { env })
    expect(bad).toMatchObject({ code: 1, stderr: expect.stringContaining('error input_invalid: ') })
    expect(bad.stderr).toContain('n: must be positive')
    expect(await hf.list()).toEqual([])
    const { id } = await ask<{ id: string }>(['submit', 'count', '{"n":1}', '--module', module, '--delay', '1h'], {
      env,
    })
    expect(await hf.get(id)).toMatchObject({ state: 'queued', input: { n: 1 } })
    const none = await call(['submit', 'other', '--module', module], { env })
    expect(none.stderr).toContain('No kind is named "other". The module exports: count.')
  })

  test('a job that failed is told as data and as an error', async ({ open, url }) => {
    const broken = defineJob('broken', {
      retries: 0,
      run: () => {
        throw new Error('out of paper')
      },
    })
    await (await open({ jobs: [broken] })).work()
    const { code, stdout, stderr } = await call(['submit', 'broken', '--wait', '--json'], {
      env: { HOLDFAST_URL: url },
    })
    expect(JSON.parse(stdout).result).toMatchObject({ state: 'failed', error: { message: 'out of paper' } })
    expect(JSON.parse(stderr).error).toMatchObject({ code: 'job_failed' })
    expect(code).toBe(1)
  })

  test('a wait that is too short says that the job goes on', async ({ hf, url }) => {
    const module = await moduleOf(`
      import { defineJob } from ${JSON.stringify(library)}
      export default [defineJob('later', { run: () => 1 })]`)
    const waited = await call(['submit', 'later', '--module', module, '--wait', '50ms'], { env: { HOLDFAST_URL: url } })
    expect(waited).toMatchObject({ code: 1, stderr: expect.stringContaining('error result_timeout: ') })
    expect(await hf.list()).toMatchObject([{ kind: 'later', state: 'queued' }])
  })
})

describe('jobs, show, cancel and redo', () => {
  test('jobs are listed by page and filter, as a table and as JSON', async ({ hf, url }) => {
    const env = { HOLDFAST_URL: url }
    const [first, second, third] = await hf.submitMany(
      echo,
      ['a', 'b', 'c'].map((tenant) => ({ input: 1 as never, tenant, delayMs: 3_600_000 })),
    )
    const page = await ask<{ jobs: { id: string }[]; next: string }>(['jobs', '--limit', '2'], { env })
    expect(page.jobs.map(({ id }) => id)).toEqual([third?.id, second?.id])
    expect(page.next).toBe(second?.id)
    expect(await ask(['jobs', '--before', page.next], { env })).toMatchObject({ jobs: [{ id: first?.id }], next: null })
    expect(await ask(['jobs', '--tenant', 'b', '--state', 'queued'], { env })).toMatchObject({
      jobs: [{ id: second?.id }],
    })
    expect(await ask(['jobs', '--kind', 'none'], { env })).toEqual({ jobs: [], next: null })
    expect(await ask<{ jobs: unknown[] }>(['jobs', '--since', '1h', '--items'], { env })).toMatchObject({
      jobs: { length: 3 },
    })
    expect(await ask(['jobs', '--until', '1h'], { env })).toEqual({ jobs: [], next: null })
    expect(await ask(['jobs', '--since', '2100-01-01'], { env })).toEqual({ jobs: [], next: null })
    const { stdout } = await call(['jobs', '--queue', 'loud'], { env })
    const lines = stdout.trimEnd().split('\n')
    expect(lines[0]).toMatch(/^ID +KIND +STATE +STAGE +ATTEMPT +AGE +ERROR$/)
    expect(lines[1]).toMatch(new RegExp(`^${third?.id} {2}echo {2}queued \\(in (60|59) min\\) `))
    expect(stdout).not.toContain('\u001b')
  })

  test('show tells the stages with their outputs, the error and the timeline', async ({ open, url }) => {
    const report = defineJob('report', {
      stages: [
        {
          name: 'draft',
          run: ({ log }) => {
            log('drafting', { pages: 2 })
            return { pages: 2 }
          },
        },
        {
          name: 'print',
          optional: true,
          retries: 0,
          run: () => {
            throw new Error('out of \u001b[31mpaper\nand ink')
          },
        },
      ],
    })
    const hf = await open({ jobs: [report] })
    await hf.work()
    const handle = await hf.submit(report, {} as never)
    await handle.result()
    const env = { HOLDFAST_URL: url }
    const { stdout } = await call(['show', handle.id.slice(-8)], { env })
    expect(stdout).toContain(`job       ${handle.id}\n`)
    expect(stdout).toMatch(/state {5}partial, ended after \d/)
    expect(stdout).toContain('error     handler_failed: out of paper and ink\n')
    expect(stdout).toContain('  draft: done\n    {\n      "pages": 2\n    }\n  print (optional): partial\n')
    expect(stdout).toMatch(/\+\d+ ms +log +draft 1\/2 +1 +\d+ +drafting {"pages":2}\n/)
    expect(stdout).toMatch(/\+\d+ ms +partial +print 2\/2 +2 +\d+ +out of paper and ink\n/)
    const { job, timeline } = await ask<{ job: object; timeline: { type: string }[] }>(['show', handle.id], { env })
    expect(job).toMatchObject({ id: handle.id, state: 'partial', outputs: { draft: { pages: 2 } } })
    expect(timeline.map(({ type }) => type)).toEqual(['job.submitted', 'job.log', 'job.advanced', 'job.failed'])
  })

  test('an id that is none, and one of no job, are told apart', async ({ url }) => {
    const env = { HOLDFAST_URL: url }
    expect(await call(['show', 'hello'], { env })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/error id_invalid: "hello" is not/),
    })
    expect(await call(['show', noJob], { env })).toMatchObject({
      code: 1,
      stderr: `error job_not_found: There is no job ${noJob}.\n`,
    })
    expect((await call(['show', 'abcdef12'], { env })).stderr).toMatch(
      /error job_not_found: None of the latest 1000 job ids/,
    )
  })

  test('cancel and redo answer for each id, and fail if one fails', async ({ hf, url }) => {
    const env = { HOLDFAST_URL: url }
    const { id } = await hf.submit(echo, 1 as never, { delayMs: 3_600_000 })
    const cancelled = await call(['cancel', id, 'what', noJob, '--reason', 'not needed'], { env })
    expect(cancelled.stdout).toBe(`${id}  cancelled\n`)
    expect(cancelled.stderr).toMatch(new RegExp(`^what {2}id_invalid: .*\n${noJob} {2}job_not_found: .*\n$`))
    expect(cancelled.code).toBe(1)
    expect(await hf.get(id)).toMatchObject({ state: 'cancelled', error: { message: 'not needed' } })
    expect(await call(['redo', id, '--from-start'], { env })).toEqual({
      code: 0,
      stdout: `${id}  queued again\n`,
      stderr: '',
    })
    const again = await call(['redo', id, '--json'], { env })
    expect(JSON.parse(again.stdout)).toEqual({
      results: [{ id, ok: false, error: { code: 'move_illegal', message: expect.stringContaining('is queued') } }],
    })
    expect(again.code).toBe(1)
  })

  test('a reader that leaves early is no failure', async ({ hf, url }) => {
    await hf.submitMany(
      echo,
      Array.from({ length: 1000 }, () => ({ input: 1 as never })),
    )
    const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
    const child = spawn(process.execPath, [main, 'jobs', '--limit', '1000', '--url', url], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let stderr = ''
    child.stderr.on('data', (piece) => (stderr += piece))
    child.stdout.destroy()
    const [code] = await once(child, 'exit')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })
})
