import { expect, test } from 'vitest'
import { cellsOf, fanOutLines, itemBar } from './format-fan-out.ts'

const none = { succeeded: 0, failed: 0, cancelled: 0, running: 0, queued: 0 }

test('a bar of items has the same length whatever they do, and a cell for whatever there is', () => {
  for (const counts of [
    { ...none, succeeded: 1 },
    { ...none, succeeded: 99_999, failed: 1 },
    { succeeded: 1, failed: 1, cancelled: 1, running: 1, queued: 99_996 },
    { succeeded: 333, failed: 333, cancelled: 0, running: 0, queued: 334 },
  ]) {
    const cells = cellsOf(counts)
    expect(cells.reduce((sum, { count }) => sum + count, 0)).toBe(40)
    expect(cells.map(({ name }) => name)).toEqual(
      Object.entries(counts)
        .filter(([, n]) => n > 0)
        .map(([name]) => name),
    )
    for (const { count } of cells) expect(count).toBeGreaterThan(0)
  }
  expect(itemBar({ ...none, succeeded: 3, queued: 1 }, 8)).toBe('██████░░')
  expect(itemBar(none)).toBe('')
})

test('a fan-out says how far it is, who is still at it, and what failed', () => {
  const fan = {
    ...none,
    stage: 0,
    total: 10,
    succeeded: 5,
    failed: 3,
    running: 1,
    queued: 1,
    isComplete: false as const,
    perSecond: 2,
    etaMs: 1_000,
    ageMs: 4_000,
    stragglers: [
      { key: 'page-7', state: 'running' as const, attempt: 2, crashes: 1, sessionId: 4, deadlineAt: null },
    ] as never,
    failures: [{ key: 'page-1', error: { code: 'x', message: 'no\nink' } }] as never,
  }
  expect(fanOutLines(fan)).toEqual([
    '████████████████████✗✗✗✗✗✗✗✗✗✗✗✗▒▒▒▒░░░░ 8/10: 5 succeeded, 3 failed, 1 running, 1 queued, 2.0/s, about 1.0 s left',
    'running page-7: attempt 2 in session 4, lost 1 workers',
    'failed page-1: no ink',
    '… 2 more failed',
  ])
  expect(fanOutLines({ ...fan, ...none, total: null, isComplete: 'unknown', stragglers: [], failures: [] })).toEqual([
    ' 0 so far, more to come',
  ])
})
