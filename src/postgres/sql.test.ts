import { expect, test } from 'vitest'
import { allMoves, leadsTo, legalFrom } from '../job/machine.ts'
import { legal, raw, sql, target, textOf } from './sql.ts'

test('a value becomes a parameter and never part of the text', () => {
  const piece = sql`select ${"'; drop table job"} as a, ${2} as b`
  expect(textOf(piece)).toBe('select $1 as a, $2 as b')
  expect(piece.values).toEqual(["'; drop table job", 2])
})

test('pieces nest, and their parameters are numbered through', () => {
  const inner = sql`b = ${2} and c = ${3}`
  const piece = sql`select a = ${1}, ${inner}, ${raw('now()')}, d = ${4}`
  expect(textOf(piece)).toBe('select a = $1, b = $2 and c = $3, now(), d = $4')
  expect(piece.values).toEqual([1, 2, 3, 4])
})

test('a piece at the beginning, at the end, or alone is woven in', () => {
  const inner = sql`x = ${1}`
  expect(textOf(sql`${inner}`)).toBe('x = $1')
  expect(textOf(sql`${inner} or ${inner}`)).toBe('x = $1 or x = $2')
})

test('an array, a date and null are values', () => {
  const values = [[1, 2], new Date(0), null]
  expect(sql`${values[0]}${values[1]}${values[2]}`.values).toEqual(values)
})

test('the guard of a move lists exactly the states that it may start from', () => {
  for (const move of allMoves)
    expect(textOf(legal(move))).toBe(
      `job.state in (${legalFrom(move)
        .map((state) => `'${state}'`)
        .join(', ')})`,
    )
})

test('a move writes the state that it leads to, and one with several ends must say which', () => {
  for (const move of allMoves) {
    if (leadsTo(move).length === 1) expect(textOf(target(move))).toBe(`'${leadsTo(move)[0]}'`)
    else expect(() => target(move)).toThrow('say which')
    for (const state of leadsTo(move)) expect(textOf(target(move, state))).toBe(`'${state}'`)
  }
  expect(() => target('claim', 'failed')).toThrow('does not lead to')
})
