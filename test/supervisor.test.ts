import { defineJob } from 'holdfast'
import { onTestFinished } from 'vitest'
import { Supervisor, type SupervisorOptions } from '#holdfast/cli/supervisor'
import { allGone, library, moduleOf } from './cli/command.ts'
import { expect, gate, test, until } from './fixtures.ts'

const module = `
  import { defineJob } from ${JSON.stringify(library)}
  export const greet = defineJob('greet', { run: () => 'hello' })`
const greet = defineJob('greet', { run: () => 'hello' })

/** A running supervisor of one worker process, and what it has reported. */
async function supervise(url: string, more: Partial<SupervisorOptions> = {}) {
  const env: NodeJS.ProcessEnv = { ...process.env, HOLDFAST_URL: url, HOLDFAST_LOG_LEVEL: 'silent' }
  const started: number[] = []
  const ends: string[] = []
  const supervisor = new Supervisor({
    args: ['work-child', await moduleOf(module)],
    env,
    processes: 1,
    patienceMs: 10_000,
    livenessMs: 60_000,
    onError: () => {},
    observer: {
      started: (pid) => void started.push(pid),
      ended: (_pid, how) => void ends.push(how),
      stalled: () => {},
      unready: () => {},
    },
    ...more,
  })
  onTestFinished(() => supervisor.kill())
  await supervisor.start()
  return { supervisor, env, started, ends }
}

const killFirst = ({ supervisor }: { supervisor: Supervisor }) =>
  process.kill(supervisor.pids()[0] as number, 'SIGKILL')

test('a supervisor that cannot start a process tries again until it can', async ({ url, hf }) => {
  const supervised = await supervise(url)
  const { supervisor, env, started, ends } = supervised
  // no system starts a process with so large an environment, and it says so in the same way as if it lacked memory
  env.TOO_LARGE = 'x'.repeat(8_000_000)
  killFirst(supervised)
  await until(() => ends.filter((how) => /^failed to start: /.test(how)).length >= 2, 'two starts fail')
  delete env.TOO_LARGE
  await until(() => started.length === 2, 'a process is ready')
  const job = await hf.submit(greet, null)
  expect(await job.result({ timeout: 15_000 })).toMatchObject({ output: 'hello' })
  await supervisor.stop()
  await allGone(started)
})

test('a supervisor whose first process cannot be started says why', async ({ url }) => {
  const env = { ...process.env, TOO_LARGE: 'x'.repeat(8_000_000) }
  await expect(supervise(url, { env })).rejects.toMatchObject({
    code: 'not_running',
    message: expect.stringMatching(/^A worker process failed to start: .*E2BIG/),
  })
})

test('a process is replaced while the jobs of the one before are still being taken back', async ({ url }) => {
  const takenBack = gate()
  const supervised = await supervise(url, { onChildExit: () => takenBack.promise })
  const { supervisor, started } = supervised
  killFirst(supervised)
  await until(() => started.length === 2, 'the next process is ready')
  let isStopped = false
  const stopping = supervisor.stop().then(() => {
    isStopped = true
  })
  await allGone(started)
  expect(isStopped).toBe(false)
  takenBack.open()
  await stopping
})
