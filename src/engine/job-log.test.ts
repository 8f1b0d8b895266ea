import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { makeJobLog } from './job-log.ts'

const lines: { facts: object; message: string }[] = []
const warn = (facts: object, message: string) => void lines.push({ facts, message })
const log = { debug() {}, info() {}, warn, error() {} }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
  lines.length = 0
})

test('ten thousand failures in a minute are a few lines each second, which say how many were left out', () => {
  const jobs = makeJobLog(log)
  let at = 0
  for (let n = 0; n < 10_000; n++) {
    jobs.warn({ job: `j${n}`, kind: 'mail', attempt: 1, reason: `no server ${n}` }, 'an attempt failed')
    vi.advanceTimersByTime(6)
    at += 6
  }
  jobs.flush()
  expect(at).toBe(60_000)
  const told = lines.filter(({ facts }) => 'job' in facts).length
  const leftOut = lines.reduce((sum, { facts }) => sum + ((facts as { leftOut?: number }).leftOut ?? 0), 0)
  expect(told + leftOut).toBe(10_000)
  expect(lines.length).toBeLessThan(61 * 6 + 6)
  expect(lines.find(({ facts }) => 'leftOut' in facts)).toMatchObject({
    facts: { kind: 'mail', leftOut: expect.any(Number), reason: expect.stringMatching(/^no server/) },
    message: 'an attempt failed (more of the same)',
  })
})

test('a kind that fails a lot hides no other kind, and very many kinds are counted together', () => {
  const jobs = makeJobLog(log)
  for (let n = 0; n < 100; n++) jobs.warn({ job: `j${n}`, kind: 'mail', attempt: 1 }, 'failed')
  jobs.warn({ job: 'x', kind: 'report', attempt: 1 }, 'failed')
  expect(lines.at(-1)).toMatchObject({ facts: { kind: 'report' } })
  for (let n = 0; n < 100; n++) jobs.warn({ job: `k${n}`, kind: `kind-${n}`, attempt: 1 }, 'failed')
  expect(lines.length).toBe(5 + 1 + 18)
  jobs.flush()
  expect(lines.slice(-2)).toMatchObject([{ facts: { kind: 'mail', leftOut: 95 } }, { facts: { leftOut: 82 } }])
})
