import { expect, test } from 'vitest'
import { whyNotApplicable } from './faults.ts'
import type { Role } from './orders.ts'

const sentBy = (...roles: Role[]) => ({
  sighting: { count: 1, roles: new Set(roles), isAboutWaking: false, isWrite: true },
  isFull: false,
})

test('rows are locked under every statement that writes, except those that create the tables', () => {
  expect(whyNotApplicable('locked', 'job.finish', sentBy('worker'))).toBeUndefined()
  expect(whyNotApplicable('locked', 'commit', sentBy('migrator', 'worker'))).toBeUndefined()
  expect(whyNotApplicable('locked', 'guard.join', sentBy('migrator'))).toBe(
    'It runs before there are rows that anyone could lock.',
  )
})

test('rows are not locked where no other job could run, since nothing could show that it goes on', () => {
  expect(whyNotApplicable('locked', 'job.cancel', { ...sentBy('submitter'), isFull: true })).toBe(
    'Every worker is busy in this scenario, so no other job could show that it runs.',
  )
  expect(whyNotApplicable('cut-before', 'job.cancel', { ...sentBy('submitter'), isFull: true })).toBeUndefined()
})
