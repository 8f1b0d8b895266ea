import { expect, test } from 'vitest'
import { table } from './table.ts'
import { fitted, hasColors, oneLine, padded, paint, widthOf } from './terminal.ts'

const terminal = { isTTY: true, columns: 30 }

test('columns align whatever the texts hold', () => {
  const rows = [
    [{ text: '漢字' }, { text: 'x' }],
    [{ text: 'é🎉' }, { text: 'y' }],
    [{ text: 'plain' }, { text: 'z' }],
  ]
  expect(table(['A', 'B'], rows, {})).toEqual(['A      B', '漢字   x', 'é🎉    y', 'plain  z'])
})

test('only a terminal cuts the last column', () => {
  const rows = [[{ text: 'id' }, { text: 'a long error message that goes on' }]]
  expect(table(['ID', 'ERROR'], rows, {})[1]).toBe('id  a long error message that goes on')
  expect(table(['ID', 'ERROR'], rows, { ...terminal, columns: 20 }).at(-1)).toBe('id  a long error me…')
})

test('colors are for terminals whose owner wants them', () => {
  expect(hasColors(terminal, {})).toBe(true)
  expect(hasColors(terminal, { NO_COLOR: '1' })).toBe(false)
  expect(hasColors({}, {})).toBe(false)
  expect(paint('red', 'x', {})).toBe('x')
})

test('text from outside cannot steer the terminal', () => {
  expect(oneLine('a\u001b[2Jb\r\n\tc\u0007\u202ed')).toBe('ab c d')
})

test('widths count cells, not code units', () => {
  expect(['abc', '漢字', '👩‍👩‍👧', 'e\u0301', '\u001b[31mred\u001b[0m'].map(widthOf)).toEqual([3, 4, 2, 1, 3])
  expect(fitted('漢字漢字', 5)).toBe('漢字…')
  expect(padded('漢', 4)).toBe('漢  ')
})
