import { expect, test } from 'vitest'
import { endpointState } from './format-webhook.ts'

test('an endpoint that is off says why, and one that fails says for how long', () => {
  const on = { disabledAt: null, disabledWhy: null, failingSince: null }
  expect(endpointState(on).text).toBe('on')
  expect(endpointState({ ...on, failingSince: new Date(0) }, 300_000).text).toBe('failing for 5 min')
  const off = { disabledAt: new Date(0), disabledWhy: 'It moves house.', failingSince: new Date(0) }
  expect(endpointState(off)).toEqual({ text: 'off: It moves house.', look: 'red' })
})
