import { randomUUID } from 'node:crypto'
import { type ConnectOptions, defineJob, type Holdfast, PermanentError } from 'holdfast'
import { invariants } from '#holdfast/audit/audit'
import { checks, type Invariant } from '#holdfast/audit/audit.sql'
import { claimItems, finish, waiting } from './barrier/given.ts'
import { memberKinds as kinds, startMember, swift } from './crash/member.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, type Fixtures, newDatabase, test, until } from './fixtures.ts'
import { drain, plain } from './owned.ts'
import { finishedCrowd, queuedCrowd, setCrashes } from './places.ts'

type Ground = Pick<Fixtures, 'given' | 'query' | 'store' | 'hf'>

const anEvent = `insert into holdfast.event_log (type, job_id, kind, tenant, attempt, stage) values`

/** A process that has been sending for an hour, as far as the database knows. */
async function aSender(query: Fixtures['query']): Promise<void> {
  await query(`
    insert into holdfast.event_reader (id, group_name, host, pid, started_at, lease_until)
    values (gen_random_uuid(), 'webhooks', 'here', 1, now() - interval '1 h', now() + interval '1 h')`)
}

/** A schedule whose next slot is then. */
async function aSchedule(query: Fixtures['query'], name: string, nextAt: string): Promise<void> {
  await query(
    `insert into holdfast.schedule (tenant, name, kind, queue, crash_budget, kind_priority, input, every_ms, missed, missed_window_ms, missed_cap, overlap, next_at, due_at)
     values ('default', $1, 'sample', 'default', 3, 2, 'null', 60000, 'latest', 0, 1, 'skip', ${nextAt}, ${nextAt})`,
    [name],
  )
}

/** A delivery that has been due for an hour. */
async function aDelivery(query: Fixtures['query'], endpoint: string): Promise<string> {
  const [row] = await query<{ id: string }>(
    `insert into holdfast.delivery (event_seq, event_id, type, tenant, endpoint_id, lane, state, next_at, body)
     values (1, 'evt_1', 'job.submitted', 'default', $1::uuid, $1, 'pending', now() - interval '1 h', '{}')
     returning id`,
    [endpoint],
  )
  return row?.id ?? ''
}

/** For each invariant, a way to break it by hand. It answers what the audit must name. */
const breaches: Record<Invariant, (on: Ground) => Promise<string>> = {
  'job-is-in-one-place': async ({ given, query }) => {
    const { id } = await given.queued()
    await query(
      `
      insert into holdfast.outcome (job_id, kind, tenant, finished_at, attempt, stage, failures, crashes, is_flawed, state)
      values ($1, 'sample', 'default', now(), 0, 0, 0, 0, false, 'cancelled')`,
      [id],
    )
    return id
  },
  'place-has-job': async ({ given, query }) => {
    const { id } = await given.finished()
    await query('delete from holdfast.job')
    return id
  },
  'outcome-was-written': async ({ given, query }) => {
    const { id } = await given.queued()
    await query(
      `insert into holdfast.parked_outcome (job_id, attempt, session_id, outcome, reason, parked_at)
       values ($1, 1, 1, '{}', 'planted', now() - interval '1 h')`,
      [id],
    )
    return id
  },
  'attempt-has-living-session': async ({ given, query }) => {
    const { id } = await given.running()
    await query(`update holdfast.session set ended_at = now() - interval '1 h'`)
    return id
  },
  'attempt-within-deadline': async ({ given, query }) => {
    const { id } = await given.running()
    await query(`update holdfast.lease set deadline_at = now() - interval '1 h'`)
    return id
  },
  'session-within-lease': async ({ given, query }) => {
    const sessionId = await given.session()
    await query(`update holdfast.session set lease_until = now() - interval '1 h'`)
    await query(`
      insert into holdfast.leader (term, holder, acquired_at, renewed_at, lease_until)
      values (1, 'somebody', now() - interval '1 h', now(), now() + interval '1 h')`)
    return String(sessionId)
  },
  'somebody-leads': async ({ given, query }) => {
    await given.session()
    await query(`update holdfast.session set started_at = now() - interval '2 h'`)
    await query(`
      insert into holdfast.leader (term, holder, acquired_at, renewed_at, lease_until)
      values (1, 'nobody', now() - interval '2 h', now() - interval '1 h', now() - interval '1 h')`)
    return 'leader'
  },
  'due-job-is-claimed': async ({ given, query }) => {
    const { id, queue } = await given.queued()
    await given.session()
    await query(`update holdfast.ready set run_at = now() - interval '1 h'`)
    await query(`update holdfast.session set wants_wake = true, kinds = array['sample'], queues = array[$1]`, [queue])
    return id
  },
  'limit-is-kept': async ({ given, query }) => {
    await given.running()
    await query(`update holdfast.lease set gate_key = ' '`)
    await query(
      `insert into holdfast.limiter (scope, name, chosen, changed_at) values ('kind', 'sample', '{"whole": {"concurrency": 0}}', now() - interval '1 h')`,
    )
    return 'kind sample'
  },
  'limited-job-has-gate': async ({ given, query }) => {
    await query(
      `insert into holdfast.limiter (scope, name, chosen) values ('kind', 'sample', '{"whole": {"concurrency": 5}}')`,
    )
    const { id } = await given.queued()
    await query(`update holdfast.ready set run_at = now() - interval '1 h'`)
    await query('delete from holdfast.gate_hint')
    return id
  },
  'job-has-payload': async ({ given, query }) => {
    const { id } = await given.finished('succeeded', { meta: {} })
    await query('delete from holdfast.job_payload')
    return id
  },
  'one-final-settle': async ({ given, query }) => {
    const { id } = await given.finished('failed')
    await query(`${anEvent} ('job.finished', $1, 'sample', 'default', 1, 0)`, [id])
    return id
  },
  'live-job-not-ended': async ({ given, query }) => {
    const { id } = await given.running()
    await query(`${anEvent} ('job.finished', $1, 'sample', 'default', 1, 0)`, [id])
    return id
  },
  'one-settle-per-attempt': async ({ given, query }) => {
    const { id } = await given.running()
    for (const type of ['job.retried', 'job.revived'])
      await query(`${anEvent} ('${type}', $1, 'sample', 'default', 1, 0)`, [id])
    return id
  },
  'attempts-only-grow': async ({ given, query }) => {
    const { id } = await given.running()
    await query(`${anEvent} ('job.log', $1, 'sample', 'default', 9, 0)`, [id])
    return id
  },
  'crashes-match-revivals': async ({ given, query }) => {
    const { id } = await given.running()
    await setCrashes(query, 2)
    return id
  },
  'signalled-job-is-due': async ({ given, query }) => {
    const { id } = await given.queued()
    await query(`update holdfast.ready set run_at = now() + interval '1 h'`)
    await query(
      `insert into holdfast.signal_wait (job_id, stage, name, until) values ($1, 0, 'go', now() + interval '1 h')`,
      [id],
    )
    await query(`insert into holdfast.signal (job_id, name, sent_at) values ($1, 'go', now() - interval '1 h')`, [id])
    return id
  },
  'wait-has-an-end': async ({ given, query }) => {
    const { id } = await given.queued()
    await query(`update holdfast.ready set run_at = now() + interval '1 h'`)
    await query(
      `insert into holdfast.signal_wait (job_id, stage, name, until) values ($1, 0, 'go', now() + interval '1 min')`,
      [id],
    )
    return id
  },
  'unique-key-has-job': async ({ query }) => {
    const id = randomUUID()
    await query(
      `insert into holdfast.unique_job (tenant, kind, key, job_id, taken_at) values ('t', 'k', 'u', $1, now() - interval '1 h')`,
      [id],
    )
    return id
  },
  'key-has-job': async ({ query }) => {
    const id = randomUUID()
    await query(`insert into holdfast.job_key (tenant, key, job_id, fingerprint) values ('t', 'k', $1, 'f')`, [id])
    return id
  },
  'waiting-has-barrier': async ({ given, store, query }) => {
    const { parent } = await waiting({ given, store }, { items: 1 })
    await query('update holdfast.barrier set joined_at = now()')
    return parent.id
  },
  'counters-match-ledger': async ({ given, store, query }) => {
    const { barrier } = await waiting({ given, store }, { items: 2 })
    await query('update holdfast.barrier set succeeded = 1')
    return barrier.id
  },
  'one-join-per-fan-out': async ({ given, store, query }) => {
    const { parent } = await waiting({ given, store }, { items: 0 })
    await query(`${anEvent} ('job.joined', $1, 'sample', 'default', 1, 0)`, [parent.id])
    return parent.id
  },
  'item-has-barrier': async ({ given, store, query }) => {
    const { items } = await waiting({ given, store }, { items: 1 })
    await query('delete from holdfast.barrier')
    return items[0] as string
  },
  'joined-has-ended': async ({ given, store, query }) => {
    const made = await waiting({ given, store }, { items: 2 })
    await finish(store, await claimItems({ given }, made))
    await query('update holdfast.barrier set succeeded = 3 where id = $1', [made.barrier.id])
    return made.barrier.id
  },
  'owned-counters-match-ledger': async ({ hf, query }) => {
    await hf.barrier.open({ ...plain, id: 'counted' })
    await query('update holdfast.owned_barrier set arrived = 1')
    return 'counted'
  },
  'one-firing-per-arming': async ({ hf, query }) => {
    await hf.barrier.open({ ...plain, id: 'fired', parts: 0 })
    await query(`
      insert into holdfast.event_log (type, job_id, kind, tenant, attempt, stage)
      select 'job.submitted', job_id, kind, tenant, 0, 0 from holdfast.owned_barrier`)
    return 'fired'
  },
  'drained-is-fired': async ({ hf, query }) => {
    await hf.barrier.open({ ...plain, id: 'drained' })
    await drain(query, 'drained', 2)
    await query(`update holdfast.owned_barrier set moved_at = now() - interval '1 h'`)
    return 'drained'
  },
  'wanted-event-is-planned': async ({ hf, query }) => {
    const { id } = await hf.webhooks.create({ url: 'https://example.com', types: 'job.submitted' })
    await hf.submit(kinds.hold, null)
    await query(`update holdfast.event_cursor set seq = (select max(seq) from holdfast.event)`)
    const [event] = await query<{ seq: number }>(`select seq from holdfast.event where type = 'job.submitted'`)
    expect(await hf.webhooks.deliveries({ endpoint: id })).toEqual([])
    return String(event?.seq)
  },
  'due-delivery-is-tried': async ({ hf, query }) => {
    const { id } = await hf.webhooks.create({ url: 'https://example.com', types: 'job.submitted' })
    await aSender(query)
    return aDelivery(query, id)
  },
  'disabled-has-nothing-pending': async ({ hf, query }) => {
    const { id } = await hf.webhooks.create({ url: 'https://example.com', types: 'job.submitted' })
    await query(`update holdfast.endpoint set disabled_at = now() - interval '1 h'`)
    await aSender(query)
    return aDelivery(query, id)
  },
  'bulk-goes-on': async ({ hf, given, query }) => {
    await given.queued()
    const { id } = await hf.bulk.start({ operation: 'cancel', filter: { kind: 'sample' } })
    await query(`update holdfast.bulk
      set lease_until = now() - interval '1 h', next_at = now() - interval '1 h', moved_at = now() - interval '1 h'`)
    await query(`insert into holdfast.leader (term, holder, acquired_at, renewed_at, lease_until)
      values (1, 'here', now() - interval '1 h', now(), now() + interval '1 h')`)
    return id
  },
  'bulk-skips-are-counted': async ({ hf, given, query }) => {
    const job = await given.queued()
    const { id } = await hf.bulk.start({ operation: 'cancel', filter: { kind: 'sample' } })
    await query(`insert into holdfast.bulk_skip (bulk_id, job_id, reason) values ($1, $2, 'locked')`, [id, job.id])
    return id
  },
  'cursor-within-log': async ({ hf, query }) => {
    await hf.webhooks.create({ url: 'https://example.com' })
    await query('update holdfast.event_cursor set seq = 1000')
    return 'webhooks'
  },
  'due-slot-is-decided': async ({ query }) => {
    await query(`
      insert into holdfast.leader (term, holder, acquired_at, renewed_at, lease_until)
      values (1, 'somebody', now() - interval '1 h', now(), now() + interval '1 h')`)
    await aSchedule(query, 'late', `now() - interval '1 h'`)
    return 'default/late'
  },
  'one-job-per-slot': async ({ query }) => {
    await query(`
      insert into holdfast.schedule_slot (tenant, name, slot_at, what, job_id)
      select 'default', 'twice', now() - number * interval '1 h', 'submitted', '01890a5d-ac96-774b-bcce-b302099a8057'
      from generate_series(1, 2) as number`)
    return '01890a5d-ac96-774b-bcce-b302099a8057'
  },
  'slot-history-is-consistent': async ({ query }) => {
    await aSchedule(query, 'odd', `now() + interval '1 h'`)
    await query(
      `insert into holdfast.schedule_slot (tenant, name, slot_at, what) values ('default', 'odd', now(), 'submitted')`,
    )
    return 'default/odd'
  },
  'guards-stand': async ({ query }) => {
    await query('alter table holdfast.lease drop constraint lease_size')
    return 'lease_size'
  },
}

test.for(Object.keys(breaches) as Invariant[])(
  'an audit names what breaks %s',
  async (invariant, { given, query, store, hf }) => {
    const subject = await breaches[invariant]({ given, query, store, hf })
    const { violations, checked } = await hf.audit()
    expect(checked).toEqual(invariants)
    const named = violations.find((violation) => violation.invariant === invariant)
    expect(named).toMatchObject({ invariant, total: 1, examples: [{ subject }] })
    expect(named?.examples[0]?.found).toMatch(/\w/)
    // what is broken here breaks little else: at most what follows from it
    expect(violations.length).toBeLessThanOrEqual(2)
  },
)

test('a guard that is switched off is named as well as one that is missing', async ({ query, hf }) => {
  await query('alter table holdfast.ready disable trigger attempts_grow')
  await query('alter table holdfast.outcome drop constraint outcome_state')
  expect((await hf.audit()).violations).toMatchObject([
    { invariant: 'guards-stand', total: 2, examples: [{ subject: 'attempts_grow' }, { subject: 'outcome_state' }] },
  ])
})

test('of many rows that break an invariant all are counted and the first are shown', async ({ given, query, hf }) => {
  await Promise.all(Array.from({ length: 30 }, () => given.queued({ meta: {} })))
  await query('delete from holdfast.job_payload')
  const { violations, sizes } = await hf.audit()
  expect(violations).toMatchObject([{ invariant: 'job-has-payload', total: 30 }])
  expect(violations[0]?.examples).toHaveLength(20)
  expect(sizes).toEqual({ live: 30, finished: 0, events: 30 }) // although nobody has gathered statistics yet
})

test('an audit counts the events of very many jobs', async ({ query, hf }) => {
  await query(queuedCrowd({ count: 110_000, queue: `'mine'` }))
  await query(
    finishedCrowd({
      count: 130_000,
      queue: `'mine'`,
      state: `case when n % 10 = 0 then 'failed' else 'succeeded' end`,
    }),
  )
  await query('vacuum analyze holdfast.job, holdfast.ready, holdfast.outcome')
  const [real] = await query<{ events: number }>('select count(*)::int as events from holdfast.event')
  const { sizes } = await hf.audit({ latest: 10 })
  expect(sizes.events / (real as { events: number }).events).toBeCloseTo(1, 1)
  expect(sizes.live / 110_000).toBeCloseTo(1, 1)
  expect(sizes.finished / 130_000).toBeCloseTo(1, 1)
})

test('an input is missing only where it is neither in the row of its job nor in one of its own', async ({
  given,
  query,
  hf,
}) => {
  await given.queued()
  await given.finished()
  await given.queued({ meta: {} })
  const live = await given.queued()
  const finished = await given.finished()
  await query('update holdfast.job set input = null where id = $1', [live.id])
  await query('update holdfast.job set input = null where id = $1', [finished.id])
  const { violations } = await hf.audit()
  expect(violations).toMatchObject([{ invariant: 'job-has-payload', total: 2 }])
  expect(violations[0]?.examples.map(({ subject }) => subject).sort()).toEqual([live.id, finished.id].sort())
})

test('only the latest jobs get a look each, unless all are asked for', async ({ given, query, hf }) => {
  const first = await given.finished('succeeded', { meta: {} })
  await given.finished('succeeded', { meta: {} })
  await query('delete from holdfast.job_payload where job_id = $1', [first.id])
  expect((await hf.audit({ latest: 1 })).violations).toEqual([])
  expect((await hf.audit({ latest: null })).violations).toMatchObject([{ invariant: 'job-has-payload', total: 1 }])
})

test('a busy database breaks no invariant: jobs run, fail, retry, are cancelled, redone, revived and quarantined', async ({
  url,
  open,
  given,
  store,
}) => {
  const quickly = defineJob('quickly', { run: ({ input }: { input: unknown }) => input })
  const flaky = defineJob('fails-at-first', {
    retries: 2,
    run({ attempt }) {
      if (attempt < 3) throw new Error('not yet')
    },
  })
  const hopeless = defineJob('hopeless', {
    run() {
      throw new PermanentError('never')
    },
  })
  const hf = await open({ ...swift, jobs: [quickly, flaky, hopeless] })
  await hf.work()
  const audits: Promise<unknown>[] = []
  const look = () => void audits.push(hf.audit().then(({ violations }) => expect(violations).toEqual([])))
  const handles = [
    ...(await hf.submitMany(
      quickly,
      Array.from({ length: 300 }, (_, n) => ({ input: n, key: `key-${n}` })),
    )),
    ...(await hf.submitMany(
      flaky,
      Array.from({ length: 40 }, () => ({ input: null })),
    )),
  ]
  look()
  const bad = await hf.submit(hopeless, null)
  const victim = await startMember({ url, kinds: ['hold'], settings: swift })
  const held = await Promise.all([1, 2, 3].map(() => hf.submit(kinds.hold, null)))
  await until(() => victim.started().length === held.length, 'the held jobs run')
  look()
  await hf.cancel((held[0] as { id: string }).id)
  const spent = await given.attemptOfDeadSession({ crashBudget: 1 })
  await sweepOf(store)
  await until(async () => (await hf.get(spent.id))?.state === 'failed', 'one is quarantined')
  await victim.kill('SIGKILL')
  look()
  await until(async () => (await hf.get((held[1] as { id: string }).id))?.crashes === 1, 'the held jobs are revived')
  await until(async () => (await hf.get(bad.id))?.state === 'failed', 'the hopeless one fails')
  for (const { id } of [bad, held[0] as { id: string }, spent]) await hf.redo(id)
  look()
  await until(async () => (await hf.get(bad.id))?.state === 'failed', 'the hopeless one fails again')
  for (const { id } of handles) await until(async () => (await hf.get(id))?.finishedAt, 'the jobs end')
  await Promise.all(audits)
  expect((await hf.audit({ latest: null })).violations).toEqual([])
})

test('a check that takes too long is told as such, and the others are made', async ({ given, pool, open }) => {
  const hf = await open({ statementTimeoutMs: 60_000 })
  await given.queued()
  const stranger = await pool.connect()
  await stranger.query('begin; lock table holdfast.job_payload in access exclusive mode')
  const seen: string[] = []
  const audited = await hf.audit({ budgetMs: 500, onCheck: (invariant) => seen.push(invariant) })
  await stranger.query('rollback')
  stranger.release()
  expect(audited.unfinished).toEqual(['job-has-payload'])
  expect(audited.checked).toContain('one-final-settle')
  expect(seen).toEqual([...audited.checked, ...audited.unfinished].sort((a, b) => seen.indexOf(a) - seen.indexOf(b)))
})

test('every check is quick beside tens of thousands of jobs, with statistics of a time when there were none', {
  timeout: 120_000,
}, async ({ hf, query }) => {
  const tables = ['job', 'ready', 'outcome', 'job_payload', 'job_key']
  for (const table of tables) await query(`alter table holdfast.${table} set (autovacuum_enabled = false)`)
  await query(`do $$ declare part text; begin
    for part in select name from holdfast.event_partition loop
      execute format('alter table holdfast.%I set (autovacuum_enabled = false)', part);
    end loop;
  end $$`)
  const fill = async (count: number) => {
    await query(finishedCrowd({ count, input: 'null' }))
    await query(queuedCrowd({ count, input: 'null' }))
    await query('update holdfast.ready set attempt = 1')
    await query('insert into holdfast.job_payload (job_id) select id from holdfast.job')
    await query(`insert into holdfast.job_key (tenant, key, job_id, fingerprint)
      select tenant, id::text, id, '' from holdfast.job`)
    await query(`insert into holdfast.event_log (type, job_id, kind, tenant, attempt, stage)
      select 'job.log', id, kind, tenant, 1, 0 from holdfast.job`)
  }
  // pages that are there and hold nothing: whatever they come to hold, the planner takes it for next to nothing
  await fill(1_000)
  const emptied = [...tables, 'event_log'].map((table) => `delete from holdfast.${table}`)
  await query(['set session_replication_role = replica', ...emptied, 'reset session_replication_role'].join('; '))
  await query('analyze')
  await fill(15_000)
  const { violations, unfinished, ms } = await hf.audit({ budgetMs: 5_000 })
  console.log(`audit of 30,000 jobs with stale statistics: ${ms} ms`)
  expect([violations, unfinished]).toEqual([[], []])
})

test('an audit writes nothing: it runs where nothing can be written', async ({ url, given, open }) => {
  await given.finished()
  const readOnly = new URL(url)
  readOnly.searchParams.set('options', '-c default_transaction_read_only=on')
  const hf = await open({ url: readOnly.href })
  await expect(hf.submit(kinds.hold, null)).rejects.toThrow(/read-only/)
  expect((await hf.audit({ latest: null })).violations).toEqual([])
})

test('an audit of a database without a schema, or with a newer one, says so', async ({ url, query, open }) => {
  const empty = await newDatabase('empty')
  const auditAt = (options: ConnectOptions) => open(options).then((hf: Holdfast) => hf.audit())
  await expect(auditAt({ url: empty.url })).rejects.toMatchObject({
    code: 'schema_missing',
    message: expect.stringContaining('Run `holdfast migrate`.'),
  })
  await empty.drop()
  await query(`insert into holdfast.migration (number, name, checksum) values (9999, '9999_to_come.sql', 'x')`)
  await expect(auditAt({ url })).rejects.toMatchObject({
    code: 'schema_newer',
    message: expect.stringContaining('9999_to_come.sql'),
  })
})

test('every check of the audit is a statement with a name of its own', () => {
  const names = Object.values(checks).map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  for (const name of names) expect(name).toMatch(/^audit\.[a-z_]+$/)
})
