import { expect, test } from 'vitest'
import { type ClaimBatch, separator } from '../transitions/claim.sql.ts'
import { rowsOf } from './claim-batch.ts'

function batchOf(rows: { id: string; tenant: string; input: string }[], more: Partial<ClaimBatch> = {}): ClaimBatch {
  const joined = (of: (row: (typeof rows)[number]) => string) => rows.map(of).join(separator)
  return {
    lease_id: 11,
    lease_size: 9,
    kind: 'k',
    queue: 'q',
    stage: 1,
    priority: 2,
    due_us: 1767323045678901,
    slots: `{${rows.map((_, slot) => slot).join(',')}}`,
    ids: `{${rows.map(({ id }) => id).join(',')}}`,
    tenants: `{${rows.map(({ tenant }) => tenant).join(',')}}`,
    submitted: '1767323045678',
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

test('the jobs of a batch have the usual values unless it says otherwise', () => {
  const batch = batchOf(
    [
      { id: 'a', tenant: 's', input: 'null' },
      { id: 'b', tenant: '"t, \\"u\\""', input: '{"a": "b,c"}' },
    ],
    { attempts: '{1,3}', failures: '{0,4}', crashes: '{0,5}', parts: '{NULL,the-barrier}' },
  )
  const rows = rowsOf([batch], 7)
  const submittedAtMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
  const both = {
    sessionId: 7,
    leaseId: 11,
    leaseSize: 9,
    kind: 'k',
    stage: 1,
    priority: 2,
    submittedAtMs,
    outputs: null,
    trace: null,
  }
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

test('urgent jobs of all batches come first, and jobs of one priority stay in order', () => {
  const batch = (ids: string[], priority: number) =>
    batchOf(
      ids.map((id) => ({ id, tenant: 't', input: '1' })),
      { priority },
    )
  const rows = rowsOf([batch(['a'], 3), batch(['b'], 1), batch(['c'], 4), batch(['d'], 1)], 7)
  expect(rows.map(({ id }) => id)).toEqual(['b', 'd', 'a', 'c'])
})

test('a job without a stored input has none, and no batch means no jobs', () => {
  const batch = { ...batchOf([{ id: 'a', tenant: 't', input: '' }]), inputs: null }
  expect(rowsOf([batch], 7)).toMatchObject([{ id: 'a', input: null }])
  expect(rowsOf([], 7)).toEqual([])
})
