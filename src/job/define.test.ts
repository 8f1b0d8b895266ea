import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineJob } from './define.ts'

const run = () => {}
const fanOut = () => [1]
// every one of these is a compile error too, so the test has to look away from the types
const define = defineJob as unknown as (kind: unknown, definition: unknown) => unknown

const wrong: [what: string, kind: unknown, definition: unknown, says: RegExp][] = [
  ['a name with a space', 'two words', { run }, /has an invalid name/],
  ['no name', '', { run }, /has an invalid name/],
  ['a name of 101 letters', 'x'.repeat(101), { run }, /has an invalid name/],
  ['a queue with a NUL', 'a', { queue: 'q\0', run }, /queue/],
  ['priority 0', 'a', { priority: 0, run }, /priority 0/],
  ['priority 1.5', 'a', { priority: 1.5, run }, /priority 1.5/],
  ['a negative crash budget', 'a', { crashBudget: -1, run }, /crashBudget -1/],
  ['an input that is no schema', 'a', { input: { type: 'object' }, run }, /not a Standard Schema/],
  ['no stages', 'a', { stages: [] }, /no stages/],
  ['neither run nor stages', 'a', {}, /without a `run`/],
  [
    'two stages of one name',
    'a',
    {
      stages: [
        { name: 's', run },
        { name: 's', run },
      ],
    },
    /two stages named "s"/,
  ],
  ['a stage without a function', 'a', { stages: [{ name: 's' }] }, /without a `run`/],
  ['negative retries', 'a', { retries: -1, run }, /retries -1/],
  ['a timeout of 0', 'a', { timeoutMs: 0, run }, /timeoutMs 0/],
  ['a timeout that no timer can hold', 'a', { timeoutMs: 2 ** 40, run }, /timeoutMs/],
  ['a backoff that shrinks', 'a', { backoff: { factor: 0.5 }, run }, /backoff.factor/],
  ['a backoff that is no number', 'a', { backoff: { baseMs: Number.NaN }, run }, /backoff.baseMs/],
  ['a misspelt option', 'a', { retrys: 3, run }, /has the unknown option "retrys"; did you mean retries\?/],
  [
    'a misspelt option of a stage',
    'a',
    { stages: [{ name: 's', timeout: 5, run }] },
    /"s" with the unknown option "timeout"; did you mean timeoutMs\?/,
  ],
  [
    'a misspelt backoff',
    'a',
    { backoff: { base: 5 }, run },
    /backoff with the unknown option "base"; did you mean baseMs\?/,
  ],
  [
    'a misspelt option of each',
    'a',
    { stages: [{ name: 's', fanOut, each: { run, retires: 1 } }] },
    /each with the unknown option "retires"; did you mean retries\?/,
  ],
  [
    'an option of stages beside them',
    'a',
    { retries: 3, stages: [{ name: 's', run }] },
    /has the option "retries" next to `stages`; move it into a stage/,
  ],
  ['a fan-out outside of stages', 'a', { fanOut, each: run }, /has the option "fanOut" outside a stage/],
  [
    'a rule of fan-outs on a stage that runs',
    'a',
    { stages: [{ name: 's', run, tolerate: 1 }] },
    /"s" with tolerate, which only a fan-out has/,
  ],
  [
    'a threshold that is no number',
    'a',
    { stages: [{ name: 's', fanOut, each: run, tolerate: -1 }] },
    /tolerates -1 failed items/,
  ],
]

test.for(wrong)('a kind with %s is refused', ([, kind, definition, says]) => {
  expect(() => define(kind, definition)).toThrow(
    expect.objectContaining({ code: 'kind_invalid', message: expect.stringMatching(says) }),
  )
})

test('a kind with one function has one stage, named run', () => {
  expect(defineJob('a', { run }).stages.map(({ name }) => name)).toEqual(['run'])
})

test('a kind waits in the default queue at priority 2 unless it says otherwise', () => {
  expect(defineJob('a', { run })).toMatchObject({ queue: 'default', priority: 2 })
  expect(defineJob('a', { queue: 'slow', priority: 4, input: z.string(), run })).toMatchObject({
    queue: 'slow',
    priority: 4,
  })
})

test('a fan-out tolerates a number of items, a count or a share', () => {
  for (const tolerate of [1, 0, { count: 1 }, { share: 0.5 }])
    expect(() => defineJob('a', { stages: [{ name: 's', fanOut, each: run, tolerate }] })).not.toThrow()
})
