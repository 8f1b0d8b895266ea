import { expect, test } from 'vitest'
import { type Evidence, findOverlaps, findWrongs } from '#holdfast/prove/check'
import type { Effect } from '#holdfast/prove/observed'

const id = 'job-1'
const row = {
  id,
  kind: 'short',
  state: 'succeeded',
  attempt: 2,
  stage: 0,
  crashes: 1,
  crash_budget: 3,
  session_id: null,
  is_part: false,
  position: null,
  pid: null,
}
const event = (type: string, attempt: number) => ({ job_id: id, type, attempt, stage: 0 })
const effect = (what: Effect['what'], attempt: number, atMs: number): Effect => {
  return { what, jobId: id, stage: 'run', attempt, token: `${attempt}00-1`, atMs }
}

/** A job whose first worker was lost and whose second one finished it: nothing is wrong with it. */
const sound: Evidence = {
  acknowledged: new Map([['key', { id, kind: 'short' }]]),
  jobs: [row],
  events: [event('job.submitted', 0), event('job.revived', 1), event('job.finished', 2)],
  outputs: [{ job_id: id, stage: 0, name: 'run', attempt: 2, output: { token: '200-1', attempt: 2 } }],
  effects: [effect('started', 1, 0), effect('ended', 1, 90), effect('started', 2, 100), effect('ended', 2, 110)],
  killed: new Set(),
  barriers: { expected: new Map(), continued: [], marks: [] },
}
const wrongsOf = (change: Partial<Evidence>) => findWrongs({ ...sound, ...change }).join('\n')

test('a job that was revived and finished once has nothing wrong with it', () => {
  expect(findWrongs(sound)).toEqual([])
  expect(findOverlaps(sound)).toEqual([])
})

test('an acknowledged job that does not exist is lost', () => {
  expect(wrongsOf({ jobs: [], events: [], outputs: [] })).toContain('was acknowledged, but does not exist')
})

test('a job that ended otherwise than its kind must is wrong', () => {
  expect(wrongsOf({ jobs: [{ ...row, state: 'failed' }] })).toContain('is failed instead of succeeded')
})

test('two final events in one round are wrong, but a redo begins another', () => {
  const twice = [...sound.events, event('job.finished', 3)]
  expect(wrongsOf({ events: twice })).toContain('has 2 final events in 1 rounds')
  expect(wrongsOf({ events: [...sound.events, event('job.redone', 2), event('job.finished', 3)] })).not.toContain(
    'final',
  )
})

test('an attempt that was revived may not also finish', () => {
  const events = [event('job.submitted', 0), event('job.revived', 2), event('job.finished', 2)]
  expect(wrongsOf({ events })).toContain('attempt 2 of job job-1 (short) was settled more than once')
})

test('a job may be cancelled while it waits for its next attempt', () => {
  const jobs = [{ ...row, kind: 'stubborn', state: 'cancelled', attempt: 1 }]
  const events = [event('job.submitted', 0), event('job.released', 1), event('job.cancelled', 1)]
  expect(wrongsOf({ jobs, events, outputs: [] })).toBe('')
})

test('an output of another attempt than the one that won is wrong', () => {
  const [output] = sound.outputs as [Evidence['outputs'][number]]
  expect(wrongsOf({ outputs: [{ ...output, output: { token: '100-1', attempt: 1 } }] })).toContain('is of attempt 1')
  expect(wrongsOf({ outputs: [{ ...output, output: { token: 'other', attempt: 2 } }] })).toContain(
    'was not returned by any run',
  )
})

test('an attempt that two handlers ran is wrong', () => {
  const effects = [...sound.effects, { ...effect('started', 2, 105), token: '300-1' }]
  expect(wrongsOf({ effects })).toContain('attempt 2 was run twice')
})

test('a handler that was told to stop after its successor started is an overlap, unless its process was killed', () => {
  const effects = [effect('started', 1, 0), effect('ended', 1, 130), effect('started', 2, 100)]
  expect(findOverlaps({ effects, killed: new Set() })[0]).toContain('30 ms too late')
  expect(findOverlaps({ effects, killed: new Set([100]) })).toEqual([])
})

test('a barrier that fired an earlier arming, twice, or not at all is wrong', () => {
  const expected = new Map([['gate', { ending: 'fired' as const, job: 'last' }]])
  const fired = (...jobs: string[]) => {
    return wrongsOf({
      barriers: { expected, continued: jobs.map((job_id) => ({ job_id, barrier: 'gate' })), marks: [] },
    })
  }
  expect(fired('last')).toBe('')
  expect(fired()).toContain('has fired nothing instead of last')
  expect(fired('earlier')).toContain('has fired earlier instead of last')
  expect(fired('earlier', 'last')).toContain('has fired earlier, last instead of last')
})

test('only the execution whose time ran out may be marked, and it has to be', () => {
  const marked = (ending: 'fired' | 'marked', marks: string[]) => {
    const continued = ending === 'fired' ? [{ job_id: 'last', barrier: 'gate' }] : []
    return wrongsOf({ barriers: { expected: new Map([['gate', { ending, job: 'last' }]]), continued, marks } })
  }
  expect(marked('marked', ['gate', 'gate'])).toBe('')
  expect(marked('marked', [])).toContain('was not marked')
  expect(marked('fired', ['gate'])).toContain('was marked')
})
