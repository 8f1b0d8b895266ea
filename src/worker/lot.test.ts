import { expect, test } from 'vitest'
import { type ClaimedLot, separator } from './claim.sql.ts'
import { rowsOf } from './lot.ts'

function lotOf(rows: { id: string; kind: string; tenant: string; numbers?: string; input: string }[]): ClaimedLot {
  const joined = (of: (row: (typeof rows)[number]) => string) => rows.map(of).join(separator)
  return {
    ids: `{${rows.map(({ id }) => id).join(',')}}`,
    kinds: joined(({ kind }) => kind),
    tenants: joined(({ tenant }) => tenant),
    submitted: joined(() => '1767323045.678'),
    numbers: joined(({ numbers = '' }) => numbers),
    inputs: joined(({ input }) => input),
    outputs: null,
    trace: null,
  }
}

test('the jobs of a lot are what most jobs are, unless it says otherwise', () => {
  const lot = lotOf([
    { id: 'a', kind: 'k', tenant: 's', input: 'null' },
    { id: 'b', kind: 'l', tenant: 't', input: '{"a": "b,c"}', numbers: '2,1,3,4,5,the-barrier' },
  ])
  const rows = rowsOf([lot], 7)
  const submittedAtMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
  const both = { sessionId: 7, priority: 2, submittedAtMs, outputs: null, trace: null }
  const first = { id: 'a', kind: 'k', tenant: 's', input: 'null', stage: 0, attempt: 1, failures: 0, crashes: 0 }
  const second = {
    id: 'b',
    kind: 'l',
    tenant: 't',
    input: '{"a": "b,c"}',
    stage: 1,
    attempt: 3,
    failures: 4,
    crashes: 5,
  }
  expect(rows).toEqual([
    { ...both, ...first, is_part: false },
    { ...both, ...second, is_part: true, barrierId: 'the-barrier' },
  ])
})

test('the urgent jobs of all lots come first, and equals stay in their order', () => {
  const one = (id: string, priority: number) => ({
    id,
    kind: 'k',
    tenant: 't',
    input: '1',
    numbers: `${priority},0,1,0,0`,
  })
  const rows = rowsOf([lotOf([one('a', 3), one('b', 1)]), lotOf([one('c', 4)]), lotOf([one('d', 1)])], 7)
  expect(rows.map(({ id }) => id)).toEqual(['b', 'd', 'a', 'c'])
})

test('a job whose input is missing has none, and no lot is no job', () => {
  const lot = { ...lotOf([{ id: 'a', kind: 'k', tenant: 't', input: '' }]), inputs: null }
  expect(rowsOf([lot], 7)).toMatchObject([{ id: 'a', input: null }])
  expect(rowsOf([], 7)).toEqual([])
})
