import { expect, test } from 'vitest'
import { printable, printableLine } from './printable.ts'

const steering = '\u001b]0;owned\u0007 \u009b31m \u202egnp.exe \u2066 \r \u007f \u2028 \u200f'

test('nothing that steers a terminal or reorders text is left, and all of it can be seen', () => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
  expect(printable(steering)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200f\u2028\u202e\u2066]/)
  expect(printable(steering)).toContain('\\u001b]0;owned\\u0007 \\u009b31m \\u202egnp.exe')
})

test('JSON stays the same JSON, and plain text as it is', () => {
  const value = { [steering]: [steering, 'ä😀\t'] }
  expect(JSON.parse(printable(JSON.stringify(value, null, 2)))).toEqual(value)
  expect(printable('two\nlines\tand a tab, ä😀')).toBe('two\nlines\tand a tab, ä😀')
})

test('on one line there are blanks instead', () => {
  expect(printableLine('a\n\u009bb\u202e')).toBe('a b')
})
