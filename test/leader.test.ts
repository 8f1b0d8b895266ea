import { connect, HoldfastError } from 'holdfast'
import pg from 'pg'
import { type Leader, makeLeader } from '#holdfast/leader/leader'
import { acquireLead, currentLeader } from '#holdfast/leader/leader.sql'
import { type Runner, runnerIn, type Store } from '#holdfast/postgres/store'
import { startMember, swift } from './crash/member.ts'
import { test as base, expect, until } from './fixtures.ts'

type Happening = ['elected', number] | ['deposed', number, string] | ['trouble', string]

interface Candidate extends Leader {
  happenings: Happening[]
}

interface Candidacy {
  leaseMs?: number
  renewMs?: number
  store?: Runner
}

const test = base.extend<{ candidate: (how?: Candidacy) => Promise<Candidate> }>({
  candidate: async ({ store }, use) => {
    const all: Candidate[] = []
    await use(async (how = {}) => {
      const one = await start(store, how)
      all.push(one)
      return one
    })
    await Promise.all(all.map((one) => one.stop()))
  },
})

async function start(
  store: Store,
  { leaseMs = 600, renewMs = 50, store: runner = store }: Candidacy,
): Promise<Candidate> {
  const happenings: Happening[] = []
  const leader = makeLeader({
    store: runner,
    leaseMs,
    renewMs,
    onElected: (term) => happenings.push(['elected', term]),
    onDeposed: (term, why) => happenings.push(['deposed', term, why]),
    onError: (error) => happenings.push(['trouble', String(error)]),
  })
  await leader.start()
  return Object.assign(leader, { happenings })
}

const leads = (one: Candidate) => until(() => one.term(), 'the candidate leads')

/** Makes the statement of that name fail in this database. */
function failing(statement: string): string {
  return `
    create function holdfast.fail() returns trigger language plpgsql as $$
    begin
      if current_query() like '/* ${statement} */%' then raise exception 'planted in ${statement}'; end if;
      return null;
    end $$;
    create trigger planted before update on holdfast.leader for each statement execute function holdfast.fail()`
}

const passed = `update holdfast.leader set lease_until = now() - interval '1 ms'`

test('a candidate takes the lead, keeps it by renewing, and lets it go when it stops', async ({ candidate, store }) => {
  const one = await candidate({ leaseMs: 1_000 })
  expect(await leads(one)).toBe(1)
  const [first] = await store.run(currentLeader, {})
  const renewed = await until(async () => {
    const [row] = await store.run(currentLeader, {})
    return row && first && row.lease_until > first.lease_until && row
  }, 'the lease is renewed')
  expect(renewed).toMatchObject({ term: 1, is_current: true, holder: first?.holder })
  await one.stop()
  expect(one.term()).toBe(null)
  expect(await store.run(currentLeader, {})).toMatchObject([{ term: 1, is_current: false }])
  expect(one.happenings).toEqual([
    ['elected', 1],
    ['deposed', 1, 'it stops'],
  ])
})

test('of many candidates exactly one leads, and each new leader leads in the next term', async ({ candidate }) => {
  const all = await Promise.all(Array.from({ length: 8 }, () => candidate({ leaseMs: 5_000, renewMs: 30 })))
  for (let term = 1; term <= all.length; term++) {
    const leader = await until(() => all.find((one) => one.term() !== null), 'somebody leads')
    expect(all.map((one) => one.term()).filter((led) => led !== null)).toEqual([term])
    await leader.stop()
  }
})

test('a leader whose renewal is refused stops acting at once, and may lead again in the same cycle', async ({
  candidate,
  query,
  store,
}) => {
  const asked: string[] = []
  const spied: Runner = {
    run(statement, params) {
      asked.push(statement.name)
      return store.run(statement, params)
    },
  }
  const one = await candidate({ store: spied, leaseMs: 60_000 })
  await leads(one)
  await query(`update holdfast.leader set term = term + 1, holder = 'another', lease_until = now()`)
  await until(() => one.term() === 3, 'it leads again')
  expect(one.happenings).toEqual([
    ['elected', 1],
    ['deposed', 1, 'the renewal was refused'],
    ['elected', 3],
  ])
  const again = asked.lastIndexOf('leader.acquire')
  expect(asked.slice(again - 1, again + 1)).toEqual(['leader.renew', 'leader.acquire'])
})

test('a leader that was refused does not lead while another one holds the lease', async ({
  candidate,
  query,
  store,
}) => {
  const one = await candidate({ leaseMs: 60_000 })
  await leads(one)
  await query(`update holdfast.leader set term = 7, holder = 'another', lease_until = now() + interval '1 h'`)
  await until(() => one.happenings.length === 2, 'it is deposed')
  expect(one.term()).toBe(null)
  await one.stop()
  expect(await store.run(currentLeader, {})).toMatchObject([{ term: 7, holder: 'another', is_current: true }])
})

test('a leader whose renewal throws stops acting at once, and may lead again in the same cycle', async ({
  candidate,
  query,
}) => {
  const one = await candidate({ leaseMs: 60_000 })
  await leads(one)
  await query(`${failing('leader.renew')}; ${passed}`)
  await until(() => one.happenings.length >= 4, 'it leads again')
  expect(one.happenings.slice(0, 4)).toEqual([
    ['elected', 1],
    ['deposed', 1, 'the renewal failed'],
    ['trouble', expect.stringContaining('planted in leader.renew')],
    ['elected', 2],
  ])
})

test('a leader whose renewal throws does not lead again before its own lease is over', async ({ candidate, query }) => {
  const one = await candidate({ leaseMs: 60_000 })
  await leads(one)
  await query(failing('leader.renew'))
  await until(() => one.happenings.some(([what]) => what === 'trouble'), 'the renewal throws')
  expect(one.term()).toBe(null)
  await query(passed)
  expect(await leads(one)).toBe(2)
})

test('candidates lock nothing while somebody leads, and wait for nobody', async ({ candidate, store, pool }) => {
  const leader = await candidate({ leaseMs: 60_000 })
  await leads(leader)
  const stranger = await pool.connect()
  await stranger.query('begin; select from holdfast.leader for update')
  const candidacy = { holder: 'somebody', leaseMs: 60_000, vacantMs: 60_000 }
  expect(await store.run(acquireLead, candidacy)).toEqual([])
  await stranger.query('update holdfast.leader set lease_until = now()')
  // it is free, but another candidate is about to take it
  expect(await store.run(acquireLead, candidacy)).toEqual([])
  await stranger.query('rollback')
  await stranger.query('begin')
  expect(await runnerIn(stranger).run(acquireLead, candidacy)).toEqual([])
  await pool.query('select from holdfast.leader for update nowait')
  await stranger.query('rollback')
  // it is free, and somebody holds it
  await leader.stop()
  await stranger.query('begin; select from holdfast.leader for update')
  expect(await store.run(acquireLead, candidacy)).toMatchObject([{ term: 1, is_taken: false }])
  await stranger.query('rollback')
  stranger.release()
})

test('of many who find the lead free at the same moment exactly one takes it', async ({ store, query }) => {
  const all = () =>
    Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        store.run(acquireLead, { holder: `${index}`, leaseMs: 60_000, vacantMs: 60_000 }),
      ),
    )
  const taken = async () => (await all()).flat().filter(({ is_taken }) => is_taken)
  expect(await taken()).toMatchObject([{ term: 1 }])
  expect((await all()).flat()).toEqual([])
  await query(passed)
  expect(await taken()).toMatchObject([{ term: 2 }])
})

test('a leader that stops lets the next one lead without waiting for the lease', async ({ candidate }) => {
  const first = await candidate({ leaseMs: 60_000 })
  await leads(first)
  const second = await candidate({ leaseMs: 60_000 })
  await first.stop()
  expect(await until(() => second.term(), 'the next one leads', 5_000)).toBe(2)
})

test('a release that fails is reported, and the leader stops all the same', async ({ candidate, query }) => {
  const one = await candidate({ leaseMs: 60_000 })
  await leads(one)
  await query(failing('leader.release'))
  await one.stop()
  expect(one.term()).toBe(null)
  expect(one.happenings.at(-1)).toEqual(['trouble', expect.stringContaining('planted in leader.release')])
})

test('a leader whose renewal stalls stops acting before its lease is over in the database', async ({
  candidate,
  url,
  store,
}) => {
  const one = await candidate({ leaseMs: 4_000 })
  await leads(one)
  const blocker = new pg.Client(url)
  await blocker.connect()
  await blocker.query('begin')
  await blocker.query('select from holdfast.leader for update')
  await until(() => one.term() === null, 'it stops acting')
  expect(await store.run(currentLeader, {})).toMatchObject([{ term: 1, is_current: true }])
  expect(one.happenings).toEqual([['elected', 1]])
  await blocker.query('rollback')
  await blocker.end()
  await leads(one)
})

const refused: [what: string, name: string, given: Record<string, number | string>][] = [
  ['a renewal as rare as the lease is long', 'leaderRenewMs', { leaderRenewMs: 2_000 }],
  ['a renewal rarer than the lease is long', 'leaderRenewMs', { leaderRenewMs: 5_000 }],
  ['no time between renewals', 'leaderRenewMs', { leaderRenewMs: 0 }],
  ['less than no time between renewals', 'leaderRenewMs', { leaderRenewMs: -1 }],
  ['a garbled renewal', 'leaderRenewMs', { leaderRenewMs: 'often' }],
  ['no lease', 'leaderLeaseMs', { leaderLeaseMs: 0 }],
  ['a garbled lease', 'leaderLeaseMs', { leaderLeaseMs: '2s' }],
  ['a sweep as rare as the lease is long', 'sweepMs', { sweepMs: 2_000 }],
  ['no time between sweeps', 'sweepMs', { sweepMs: 0 }],
  ['a garbled sweep', 'sweepMs', { sweepMs: 'now and then' }],
]

test.for(refused)('%s: it refuses to start with a sentence that names %s', async ([, name, given]) => {
  const error = await connect({ url: 'postgres://localhost/never-reached', ...given }).catch(
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(HoldfastError)
  expect(error).toMatchObject({
    code: 'config_invalid',
    message: expect.stringMatching(new RegExp(`^The setting ${name} must be .+\\.$`)),
  })
})

test('a frozen leader is replaced, and refused when it wakes', async ({ url, store, given, hf }) => {
  const frozen = await startMember({ url, role: 'reap', settings: swift })
  await frozen.heard('the first one leads', (line) => line.log === 'became leader')
  const heir = await startMember({ url, role: 'reap', settings: swift })
  await frozen.kill('SIGSTOP')
  const orphan = await given.attemptOfDeadSession()
  await heir.heard('another one leads', (line) => line.log === 'became leader' && line.term === 2)
  await until(async () => (await hf.get(orphan.id))?.state === 'queued', 'the new leader sweeps')
  await frozen.kill('SIGCONT')
  await frozen.heard('the frozen one is refused', (line) => line.log === 'stepped down')
  expect(frozen.lines.find((line) => line.log === 'stepped down')).toMatchObject({
    term: 1,
    why: 'the renewal was refused',
  })
  expect(await store.run(currentLeader, {})).toMatchObject([{ term: 2, is_current: true }])
  expect(await frozen.metrics()).toMatch(/^holdfast_leader_term 0$/m)
  expect(await heir.metrics()).toMatch(/^holdfast_leader_term 2$/m)
})
