import { defineJob } from 'holdfast'
import { expect, test, until } from './fixtures.ts'

function makeLog() {
  const lines: { level: string; facts: Record<string, unknown>; message: string }[] = []
  const at = (level: string) => (facts: object, message: string) =>
    void lines.push({ level, facts: facts as Record<string, unknown>, message })
  return { lines, log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } }
}

test('attempts that fail are logged with what failed, where, and why', async ({ open }) => {
  const { lines, log } = makeLog()
  const flaky = defineJob('flaky', {
    stages: [
      { name: 'first', run: () => 1 },
      {
        name: 'second',
        retries: 1,
        run: () => {
          throw new Error('no ink')
        },
      },
    ],
  })
  const hf = await open({ jobs: [flaky], log })
  await hf.work()
  const handle = await hf.submit(flaky, null)
  await expect(handle.result()).rejects.toMatchObject({ code: 'job_failed' })
  const about = await until(() => {
    const found = lines.filter(({ facts }) => facts.job === handle.id)
    return found.length >= 2 && found
  }, 'both lines')
  const facts = { kind: 'flaky', stage: 'second', code: 'handler_failed', reason: 'no ink' }
  expect(about).toMatchObject([
    {
      level: 'warn',
      facts: { ...facts, attempt: 2, inMs: expect.any(Number) },
      message: 'an attempt failed; it will be retried',
    },
    { level: 'warn', facts: { ...facts, attempt: 3 }, message: 'an attempt failed; its job has failed' },
  ])
})

/** A logger whose every call fails, at once or later. */
function failingLog(how: 'throws' | 'rejects') {
  let calls = 0
  const fail = () => {
    calls += 1
    if (how === 'throws') throw new Error('no space left on device')
    return Promise.reject(new Error('no space left on device')) as unknown as undefined
  }
  return { calls: () => calls, log: { debug: fail, info: fail, warn: fail, error: fail } }
}

test.for(['throws', 'rejects'] as const)('a logger that %s stops no job and no worker', async (how, { open }) => {
  const { log, calls } = failingLog(how)
  const flaky = defineJob('flaky', {
    retries: 1,
    run: ({ attempt }) => {
      if (attempt === 1) throw new Error('no ink')
      return 'printed'
    },
  })
  const hf = await open({ jobs: [flaky], log })
  await hf.work()
  const handle = await hf.submit(flaky, null)
  expect(await handle.result({ timeout: 15_000 })).toMatchObject({ output: 'printed' })
  await until(() => calls() >= 2, 'it was told of the start and of the failure')
})
