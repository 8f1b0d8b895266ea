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
