import { expect, test } from 'vitest'
import { version } from '../config/version.ts'
import { definitions, missingDefinitions, outdatedDefinitions } from './definitions.ts'

const applied = definitions.map(({ name, checksum }) => ({ name, checksum, version }))
const [first, ...others] = applied
const names = (some: { name: string }[]) => some.map(({ name }) => name)
const beside = (row: object) => outdatedDefinitions([{ ...first, ...row } as never, ...others])

test('a definition is replaced if its text has changed, unless a newer version defined it', () => {
  expect(outdatedDefinitions(applied)).toEqual([])
  expect(names(beside({ checksum: 'another' }))).toEqual([first?.name])
  expect(names(beside({ checksum: 'another', version: '0.0.9' }))).toEqual([first?.name])
  expect(beside({ checksum: 'another', version: '0.10.0' })).toEqual([])
  expect(beside({ checksum: 'another', version: '10.0.0-beta.1' })).toEqual([])
})

test('a definition that a database does not have is missing, whatever the others are', () => {
  expect(names(missingDefinitions(others))).toEqual([first?.name])
  expect(names(outdatedDefinitions(others))).toEqual([first?.name])
  expect(missingDefinitions([{ name: first?.name ?? '', checksum: 'another', version: '0.0.1' }, ...others])).toEqual(
    [],
  )
})

test('every definition has a name of its own', () => {
  expect(new Set(names(applied)).size).toBe(definitions.length)
})
