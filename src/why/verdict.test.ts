import { expect, test } from 'vitest'
import { readConfig } from '../config/config.ts'
import { allStates, type State } from '../job/machine.ts'
import { ladder } from '../reaper/recovery-bound.ts'
import type { Facts, JobFacts } from './facts.ts'
import { forTenant } from './for-tenant.ts'
import { jobRules, rules, verdictOf, verdictTable } from './verdict.ts'

const config = readConfig({}, {})
const at = '2030-01-01T12:00:00.000000+00:00'
const before = (ms: number) => new Date(Date.parse(at) - ms).toISOString()

function jobIn(state: State, other: Partial<JobFacts> = {}): JobFacts {
  return {
    id: '01890a5d-ac96-774b-bcce-b302099a8057',
    kind: 'extract',
    queue: 'default',
    tenant: 'acme',
    state,
    stage: 0,
    attempt: 1,
    failures: 0,
    crashes: 0,
    crashBudget: 3,
    priority: 2,
    submittedAt: before(10_000),
    runAt: before(10_000),
    deadlineAt: before(-60_000),
    sessionId: state === 'running' ? 7 : null,
    finishedAt: before(1_000),
    isFlawed: false,
    error: null,
    ...other,
  }
}

function factsOf(job: JobFacts, other: Partial<Facts> = {}): Facts {
  return {
    at,
    job,
    kind: null,
    outputs: [],
    progress: null,
    session: null,
    queue: { name: job.queue, pausedAt: null },
    workers: { living: 0, concurrency: 0, holding: 0, lastSeenAt: before(3 * 3_600_000) },
    barriers: [],
    itemOf: null,
    continues: null,
    events: [],
    groups: [],
    deliveries: null,
    oldestWriter: null,
    leader: { term: 1, holder: 'host-a:1', renewedAt: at, leaseUntil: before(-5_000), sweptAt: at, sweepMs: 1 },
    refusals: [],
    ...other,
  }
}

const session = {
  id: 7,
  startedAt: before(60_000),
  heartbeatAt: before(4_000),
  leaseUntil: before(-10_000),
  lostAfterMs: 3_000,
  endedAt: null,
  endedBy: null,
  canTellLock: true,
  isLocked: false,
  host: 'host-b',
  pid: 42,
}

test('there is a verdict for a job in every state, whatever else is known', () => {
  for (const state of allStates) {
    const { sentence, code } = verdictOf(factsOf(jobIn(state)), config)
    expect(sentence, code).toMatch(/[^.]\.$/)
    expect(jobRules.some((rule) => rule.states.some((one) => one === state))).toBe(true)
  }
})

test('a job without a worker says which kind is missing, and since when', () => {
  expect(verdictOf(factsOf(jobIn('queued')), config)).toMatchObject({
    code: 'no-worker',
    sentence: 'waiting: no running worker handles kind `extract` in queue `default`; last seen 3 h ago.',
    orphan: 'unknown-kind',
    next: { byAt: null },
  })
})

test('a lost lock is told with the moment by which the next sweep has moved the job', () => {
  expect(verdictOf(factsOf(jobIn('running'), { session }), config)).toMatchObject({
    code: 'lock-gone',
    orphan: 'running-dead-session',
    next: { byAt: new Date(Date.parse(at) + config.sweepMs + config.pollMs + 500) },
    repair: 'revive',
  })
})

test('a worker that is late is told with the moment by which the ladder gives its jobs back', () => {
  const lease = ladder(config).find(({ rung }) => rung === 'lease ran out')
  expect(verdictOf(factsOf(jobIn('running'), { session: { ...session, isLocked: true } }), config)).toMatchObject({
    code: 'heartbeat-late',
    sentence: 'running, but the last heartbeat of session 7 was 4.0 s ago; its process still holds its lock.',
    orphan: null,
    next: { byAt: new Date(Date.parse(session.heartbeatAt) + (lease?.boundMs ?? 0)) },
    repair: null,
  })
})

test('no moment is promised while nobody leads', () => {
  const facts = factsOf(jobIn('running'), { session, leader: null })
  expect(verdictOf(facts, config)).toMatchObject({
    code: 'nobody-leads',
    sentence: expect.stringMatching(/there has never been a leader\.$/),
    orphan: 'leader-hangs',
    next: { byAt: null },
  })
})

test('a lock that nobody looked for is not taken for lost', () => {
  const facts = factsOf(jobIn('running'), { session: { ...session, isLocked: null } })
  expect(verdictOf(facts, config).code).toBe('heartbeat-late')
  const elsewhere = factsOf(jobIn('running'), { session: { ...session, canTellLock: false } })
  expect(verdictOf(elsewhere, config).code).toBe('heartbeat-late')
})

test('an item that failed is not redone without its parent', () => {
  const itemOf = {
    barrierId: 'b',
    position: 0,
    isThere: true,
    jobId: 'p',
    stage: 0,
    total: 1,
    succeeded: 0,
    failed: 1,
    cancelled: 0,
    joinedAt: at,
    stoppedAt: null,
    expiresAt: null,
    parentState: 'queued' as const,
  }
  expect(verdictOf(factsOf(jobIn('failed')), config).repair).toBe('redo')
  expect(verdictOf(factsOf(jobIn('failed'), { itemOf }), config).repair).toBeNull()
})

test('facts for a tenant name no machine and count no job of others', () => {
  const facts = factsOf(jobIn('running'), {
    session,
    ahead: 12,
    oldestWriter: { pid: 5, since: at, application: 'psql' },
  })
  const told = JSON.stringify(forTenant(facts))
  for (const secret of ['host-a', 'host-b', '"pid"', 'psql', '"ahead"', '"holding"']) expect(told).not.toContain(secret)
  expect(verdictOf(forTenant(facts), config).code).toBe('lock-gone')
})

test('every code is used once, and stands in the table of the docs', () => {
  const codes = rules.map(({ code }) => code)
  expect(new Set(codes).size).toBe(codes.length)
  for (const code of codes) expect(verdictTable()).toContain(`| \`${code}\` |`)
})
