import { expect, test } from 'vitest'
import { type BusEvidence, findBusWrongs, findDoubleReading } from '#holdfast/prove/bus-check'
import type { Handling } from '#holdfast/prove/reader'

const job_id = 'job-1'
const handled = (seq: number, pid: number, fromMs: number, toMs: number): Handling[] => {
  const facts = { seq, partition: 0, token: `${pid}-${seq}` }
  return [
    { what: 'started', ...facts, atMs: fromMs },
    { what: 'ended', ...facts, atMs: toMs, outcome: 'handled' },
  ]
}
const receipt = { path: '/endpoint', id: 'evt_1', body: '{}', isSigned: true, answer: 'taken' as const }
const delivery = {
  id: 'delivery-1',
  event_id: 'evt_1',
  state: 'delivered',
  type: 'job.finished',
  body: '{}',
  error: null,
  path: '/endpoint',
}

/** Two events of a job, handled one after the other, and a third that is parked; one webhook that came at the second try. */
const sound: BusEvidence = {
  wanted: [1, 2, 3].map((seq) => ({ seq, job_id, type: 'job.finished', kind: 'short' })),
  parked: [{ seq: 3, error: 'It is poison.', is_due: false }],
  handlings: [...handled(1, 100, 0, 10), ...handled(2, 200, 20, 30)],
  deliveries: [delivery],
  unplanned: [],
  receipts: [{ ...receipt, answer: 'failed' }, receipt],
  killed: new Set(),
}
const wrongsOf = (change: Partial<BusEvidence>) => findBusWrongs({ ...sound, ...change }).join('\n')

test('events that were handled or parked, and webhooks that arrived, have nothing wrong with them', () => {
  expect(findBusWrongs(sound)).toEqual([])
  expect(findDoubleReading(sound)).toEqual([])
})

test('an event that nobody handled is wrong, and so is one that was only begun', () => {
  expect(wrongsOf({ parked: [] })).toContain('the event 3 (job.finished of short) was neither handled nor parked')
  const [started] = handled(2, 200, 20, 30)
  expect(wrongsOf({ handlings: [...handled(1, 100, 0, 10), started as Handling] })).toContain('the event 2')
})

test('what is first handled before its forerunner is out of order, but a second handling is not', () => {
  const turned = [...handled(2, 200, 0, 10), ...handled(1, 100, 20, 30)]
  expect(wrongsOf({ handlings: turned })).toContain('the event 2 of job job-1 was handled before 1')
  expect(wrongsOf({ handlings: [...sound.handlings, ...handled(1, 300, 40, 50)] })).toBe('')
})

test('two processes in one partition at the same time are seen, unless one of them was killed', () => {
  const handlings = [...handled(1, 100, 0, 50), ...handled(2, 200, 20, 30)]
  expect(findDoubleReading({ ...sound, handlings }).join()).toContain('ended 30 ms too late: event 2 had started')
  expect(findDoubleReading({ handlings, killed: new Set([100]) })).toEqual([])
})

test('a webhook that nobody planned, sent or took is missing', () => {
  const unplanned = [{ seq: 7, type: 'job.failed', wanted_by: 'the endpoint e' }]
  expect(wrongsOf({ unplanned })).toContain('the event 7 (job.failed) was never sent to the endpoint e')
  expect(wrongsOf({ deliveries: [{ ...delivery, state: 'pending' }] })).toContain('is pending')
  expect(wrongsOf({ receipts: [{ ...receipt, answer: 'failed' }] })).toContain('the receiver never accepted it')
})

test('only what was refused may be dead', () => {
  const deliveries = [{ ...delivery, state: 'dead' }]
  expect(wrongsOf({ deliveries })).toContain('is dead, but was never refused')
  expect(wrongsOf({ deliveries, receipts: [{ ...receipt, answer: 'refused' }] })).toBe('')
})

test('other bytes than before and a signature that does not fit are wrong', () => {
  const receipts = [receipt, { ...receipt, path: '/job', body: '[]', isSigned: false }]
  expect(wrongsOf({ receipts })).toContain('arrived with different bytes than before')
  expect(wrongsOf({ receipts })).toContain('without a valid signature')
  expect(wrongsOf({ receipts: [receipt, { ...receipt, body: '[]' }] })).toContain('different bytes than planned')
})
