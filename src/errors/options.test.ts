import { expect, test } from 'vitest'
import { refuseUnknown, unknownOption } from './options.ts'

const known = { key: true, delayMs: true, tenant: true }

test('a misspelt option is told with the one that was meant, or with all that there are', () => {
  expect([{ tenat: 1 }, { delay: 1 }, { delayms: 1 }, { when: 1 }].map((given) => unknownOption(given, known))).toEqual(
    [
      '"tenat"; did you mean tenant?',
      '"delay"; did you mean delayMs?',
      '"delayms"; did you mean delayMs?',
      '"when"; it takes key, delayMs, tenant.',
    ],
  )
})

test('options that are known, undefined or no object at all are let through', () => {
  expect(unknownOption({ key: 1, other: undefined }, known)).toBeUndefined()
  for (const given of [undefined, null, 7, 'text']) expect(() => refuseUnknown('submit', given, known)).not.toThrow()
  expect(() => refuseUnknown('submit', { keys: 1 }, known)).toThrow('submit has no option "keys"; did you mean key?')
})
