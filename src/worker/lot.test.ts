import { expect, test } from 'vitest'
import { type ClaimedLot, separator } from './claim.sql.ts'
import { rowsOf } from './lot.ts'

function lotOf(rows: { id: string; tenant: string; priority?: number; input: string }[], more: Partial<ClaimedLot> = {}): ClaimedLot {
  const joined = (of: (row: (typeof rows)[number]) => string) => rows.map(of).join(separator)
  return {
    lease_id: 11,
    lease_size: 9,
    kind: 'k',
    stage: 1,
    slots: `{${rows.map((_, slot) => slot).join(',')}}`,
    ids: `{${rows.map(({ id }) => id).join(',')}}`,
    tenants: `{${rows.map(({ tenant }) => tenant).join(',')}}`,
    submitted: '1767323045678',
    priorities: `{${rows.map(({ priority = 2 }) => priority).join(',')}}`,
    attempts: null,
    failures: null,
    crashes: null,
    parts: null,
    inputs: joined(({ input }) => input),
    outputs: null,
    trace: null,
    ...more,
  }
}

test('the jobs of a lot are what most jobs are, unless it says otherwise', () => {
  const lot = lotOf(
    [
      { id: 'a', tenant: 's', input: 'null' },
      { id: 'b', tenant: '"t, \\"u\\""', input: '{"a": "b,c"}' },
    ],
    { attempts: '{1,3}', failures: '{0,4}', crashes: '{0,5}', parts: '{NULL,the-barrier}' },
  )
  const rows = rowsOf([lot], 7)
  const submittedAtMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
  const both = { sessionId: 7, leaseId: 11, leaseSize: 9, kind: 'k', stage: 1, priority: 2, submittedAtMs, outputs: null, trace: null }
  const first = { id: 'a', slot: 0, tenant: 's', input: 'null', attempt: 1, failures: 0, crashes: 0 }
  const second = {
    id: 'b',
    slot: 1,
    tenant: 't, "u"',
    input: '{"a": "b,c"}',
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
    tenant: 't',
    input: '1',
    priority,
  })
  const rows = rowsOf([lotOf([one('a', 3), one('b', 1)]), lotOf([one('c', 4)]), lotOf([one('d', 1)])], 7)
  expect(rows.map(({ id }) => id)).toEqual(['b', 'd', 'a', 'c'])
})

test('a job whose input is missing has none, and no lot is no job', () => {
  const lot = { ...lotOf([{ id: 'a', tenant: 't', input: '' }]), inputs: null }
  expect(rowsOf([lot], 7)).toMatchObject([{ id: 'a', input: null }])
  expect(rowsOf([], 7)).toEqual([])
})
