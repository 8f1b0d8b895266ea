import pg from 'pg'
import { expect, test } from 'vitest'
import { plainList, sparseList, textList } from './array-text.ts'

const textArray = 1009
const read = pg.types.getTypeParser(textArray as never) as unknown as (text: string) => (string | null)[]

test('a list of texts is read as what it was, whatever is in them', () => {
  const texts = ['', ' ', 'NULL', 'null', '"', '\\', '\\"', '{}', 'a,b', "it's", '\n\t\u001e', 'ä€😀', '\\u0041', '$1']
  expect(read(textList(texts))).toEqual(texts)
})

test('a text that is missing is not the word for it', () => {
  expect(read(textList([null, 'NULL', null]))).toEqual([null, 'NULL', null])
})

test('a list that is missing altogether is empty, and one that is not keeps its places', () => {
  expect(sparseList([null, null])).toBe('{}')
  expect(sparseList([])).toBe('{}')
  expect(read(sparseList([null, '']))).toEqual([null, ''])
})

test('ids, numbers and answers need no quotes', () => {
  expect(plainList([1, 2.5])).toBe('{1,2.5}')
  expect(plainList([true, false])).toBe('{true,false}')
  expect(plainList([])).toBe('{}')
})
