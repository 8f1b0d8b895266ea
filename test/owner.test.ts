import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type ConnectOptions, type Holdfast, httpOwner, type Owner } from 'holdfast'
import { onTestFinished } from 'vitest'
import { markFailed, readStatus } from '#holdfast/barrier/owner'
import { ownerDuties } from '#holdfast/reaper/duties'
import type { Asking } from '#holdfast/reaper/duties/owned-barriers/ask-owner'
import { swift } from './crash/member.ts'
import { test as base, expect, gate, until } from './fixtures.ts'
import { drain, expire, firings, plain, sweepOwned } from './owned.ts'

const hour = 3_600_000

/** An owner in this process that remembers what it was asked, and answers what the test says. */
interface Told extends Owner {
  reads: [execution: string, tenant: string][]
  marks: [execution: string, tenant: string, reason: string][]
}

function ownerThat(
  status: unknown | (() => unknown),
  mark: unknown | (() => unknown) = () => expect.unreachable('nothing may be marked'),
): Told {
  const answer = async (said: unknown) => (typeof said === 'function' ? said() : said)
  const told: Told = {
    reads: [],
    marks: [],
    read(execution, tenant) {
      told.reads.push([execution, tenant])
      return answer(status)
    },
    markFailed(execution, tenant, reason) {
      told.marks.push([execution, tenant, reason])
      return answer(mark)
    },
  }
  return told
}

interface More {
  /** A barrier with two parts, one of which has arrived, that expired a second ago. */
  expired: (id?: string) => Promise<string>
  /** Asks the owner about all that has expired. */
  ask: (owner: Owner, how?: Partial<Asking>) => ReturnType<typeof sweepOwned>
}

const test = base.extend<More>({
  expired: async ({ hf, query }, use) =>
    use(async (id = 'run') => {
      const owner = { name: 'ext', execution: `exec-${id}` }
      await hf.barrier.open({ ...plain, id, tenant: 'acme', expires: hour, owner })
      await hf.barrier.arrive(id, 'a')
      await expire(query, id)
      return id
    }),
  ask: async ({ store }, use) =>
    use((owner, how = {}) =>
      sweepOwned(store, ownerDuties({ store, owners: { ext: owner }, timeoutMs: 1_000, ...how })),
    ),
})

const rearm = (hf: Holdfast, id = 'run') =>
  hf.barrier.open({ ...plain, id, tenant: 'acme', expires: hour, owner: { name: 'ext', execution: `exec-${id}` } })

test('an execution whose barrier expired with work left is marked failed by its owner', async ({
  hf,
  expired,
  ask,
}) => {
  await expired()
  const owner = ownerThat('running', 'done')
  const { healed, sweep } = await ask(owner)
  expect(owner.reads).toEqual([['exec-run', 'acme']])
  expect(owner.marks).toEqual([
    ['exec-run', 'acme', 'The barrier run expired with missing parts: 1 of 2 parts have not arrived.'],
  ])
  expect(healed).toEqual([
    {
      barrier: 'run',
      orphan: 'owned-expired',
      message: 'expired with missing parts: 1 of 2 parts have not arrived; its execution was marked failed',
    },
  ])
  expect(sweep).toMatchObject({ recovered: 1, failed: 0, isSystemic: false })
  expect(await hf.barrier.get('run')).toBe(null)
  expect(await hf.barrier.arrive('run', 'b')).toBe('abandoned')
})

test('an owner is not asked about a barrier that has time left, has fired, or has all its parts', async ({
  hf,
  query,
  ask,
  expired,
}) => {
  await rearm(hf, 'fresh')
  await expired('drained')
  await drain(query, 'drained', 1)
  await expired('negative')
  await drain(query, 'negative', -4)
  const owner = ownerThat(() => expect.unreachable('nothing may be asked'))
  const { healed, failed } = await ask(owner)
  expect(failed).toEqual([])
  expect(healed).toMatchObject([
    {
      barrier: 'drained',
      message: 'all parts had arrived, past its expiry, but the continuation had never fired; fired',
    },
    { barrier: 'negative', orphan: 'owned-negative-count' },
  ])
  expect(owner.reads).toEqual([])
  expect(await firings(query)).toBe(2)
})

test('an expired barrier with a negative count and work left is counted anew, and then its owner is asked', async ({
  query,
  ask,
  expired,
}) => {
  await expired()
  await query('update holdfast.owned_barrier set arrived = -2')
  const { healed } = await ask(ownerThat('running', 'done'))
  expect(healed.map(({ orphan }) => orphan)).toEqual(['owned-negative-count', 'owned-expired'])
  expect(new Set(healed.map(({ message }) => message)).size).toBe(2)
})

test('an expired barrier whose owner cannot be read is kept, and asked about again', async ({
  hf,
  query,
  ask,
  expired,
}) => {
  await expired()
  const broken = ownerThat(() => Promise.reject(new Error('the owner is down')))
  const { failed, sweep } = await ask(broken)
  expect(failed).toMatchObject([{ id: 'run', orphan: 'owner-unreachable', error: { message: 'the owner is down' } }])
  expect(sweep).toMatchObject({ recovered: 0, isSystemic: true })
  expect(await hf.barrier.get('run')).toMatchObject({ status: 'open', arrived: 1 })
  // not at once: an owner that is down is not asked on and on
  await ask(broken)
  expect(broken.reads).toHaveLength(1)
  await query('update holdfast.owned_barrier set due_at = now()')
  expect((await ask(ownerThat('running', 'done'))).healed).toHaveLength(1)
})

test('the wait until an owner is asked again grows to a minute, and arming resets it', async ({
  hf,
  query,
  ask,
  expired,
}) => {
  await expired()
  const waits: number[] = []
  for (let asked = 0; asked < 9; asked++) {
    await ask(ownerThat('no idea'))
    const [row] = await query<{ wait: number }>(
      'select round(extract(epoch from due_at - clock_timestamp()))::int as wait from holdfast.owned_barrier',
    )
    waits.push(row?.wait as number)
    await query('update holdfast.owned_barrier set due_at = now()')
  }
  for (const [index, most] of [1, 2, 4, 8, 16, 32, 60, 60, 60].entries()) {
    expect(waits[index]).toBeLessThanOrEqual(most)
    expect(waits[index]).toBeGreaterThanOrEqual(most / 2 - 1)
  }
  await rearm(hf)
  expect(await query('select asks, due_at = expires_at as is_due_then from holdfast.owned_barrier')).toEqual([
    { asks: 0, is_due_then: true },
  ])
})

test('an owner that takes longer to answer than the wait before the next question is asked once per turn', async ({
  query,
  ask,
  expired,
}) => {
  await expired()
  const slow = ownerThat(async () => {
    await query('update holdfast.owned_barrier set due_at = now()')
    return 'no idea'
  })
  await ask(slow)
  expect(slow.reads).toHaveLength(1)
})

test('an owner that never answers costs its time-out, and the barrier is kept', async ({ hf, ask, expired }) => {
  await expired()
  const { failed } = await ask(
    ownerThat(() => new Promise(() => {})),
    { timeoutMs: 50 },
  )
  expect(failed).toMatchObject([{ error: { message: 'There was no answer within 50 ms.' } }])
  expect(await hf.barrier.get('run')).toMatchObject({ status: 'open' })
})

test('a status that means nothing here is skipped, quietly', async ({ hf, ask, expired }) => {
  await expired()
  const { healed, failed, skipped, sweep } = await ask(ownerThat('pausing'))
  expect({ healed, failed }).toEqual({ healed: [], failed: [] })
  expect(skipped).toMatchObject([{ barrier: 'run', orphan: 'owner-unclear', isError: false }])
  expect(sweep).toMatchObject({ recovered: 0, failed: 0, isSystemic: false })
  expect(await hf.barrier.get('run')).toMatchObject({ status: 'open' })
})

test.for([
  { said: undefined },
  { said: null },
  { said: 7 },
  { said: true },
  { said: '' },
  { said: { status: 'final' } },
  { said: ['final'] },
  { said: 10n },
])('garbage ($said) for a status is skipped, with an error', async ({ said }, { hf, ask, expired }) => {
  await expired()
  const { skipped, failed } = await ask(ownerThat(() => said))
  expect(failed).toEqual([])
  expect(skipped).toMatchObject([{ barrier: 'run', orphan: 'owner-unclear', isError: true }])
  expect(await hf.barrier.get('run')).toMatchObject({ status: 'open' })
})

test('an execution that has ended is never overwritten, and its barrier is cleaned up', async ({
  hf,
  ask,
  expired,
}) => {
  await expired()
  const { healed } = await ask(ownerThat('final'))
  expect(healed).toMatchObject([{ barrier: 'run', orphan: 'owner-ended' }])
  expect(await hf.barrier.get('run')).toBe(null)
})

test('an execution that its owner says is gone is not marked, and its barrier is cleaned up', async ({
  hf,
  ask,
  expired,
}) => {
  await expired()
  const { healed } = await ask(ownerThat('gone'))
  expect(healed).toMatchObject([{ orphan: 'owner-ended', message: expect.stringContaining('is gone') }])
  expect(await hf.barrier.get('run')).toBe(null)
})

test('a mark that is answered "no" or "skipped" is not taken for done', async ({ hf, query, ask, expired }) => {
  await expired()
  for (const word of ['no', 'skipped']) {
    await query('update holdfast.owned_barrier set due_at = now()')
    const { healed, skipped, failed, sweep } = await ask(ownerThat('running', word))
    expect({ healed, failed }).toEqual({ healed: [], failed: [] })
    expect(skipped).toMatchObject([{ barrier: 'run', message: expect.stringContaining(`answered ${word}`) }])
    expect(sweep.isSystemic).toBe(false)
    expect(await hf.barrier.get('run')).toMatchObject({ status: 'open' })
  }
  expect(await hf.barrier.arrive('run', 'b')).toBe('fired')
})

test('a mark that fails, or is answered with anything but its words, is not taken for done', async ({
  hf,
  query,
  ask,
  expired,
}) => {
  await expired()
  const answers = ['DONE', true, { answer: 'done' }, undefined, () => Promise.reject(new Error('cut'))]
  for (const answer of answers) {
    await query('update holdfast.owned_barrier set due_at = now()')
    const { healed, skipped, failed } = await ask(
      ownerThat('running', () => (typeof answer === 'function' ? answer() : answer)),
    )
    expect(healed).toEqual([])
    expect(skipped.length + failed.length).toBe(1)
    expect(await hf.barrier.get('run')).toMatchObject({ status: 'open' })
  }
})

test('a mark whose answer was lost is known by the next read', async ({ hf, query, ask, expired }) => {
  await expired()
  let isMarked = false
  const owner = ownerThat(
    () => (isMarked ? 'final' : 'running'),
    () => {
      isMarked = true
      throw new Error('the answer was lost')
    },
  )
  expect((await ask(owner)).failed).toHaveLength(1)
  await query('update holdfast.owned_barrier set due_at = now()')
  expect((await ask(owner)).healed).toMatchObject([{ orphan: 'owner-ended' }])
  expect(owner.marks).toHaveLength(1)
  expect(await hf.barrier.get('run')).toBe(null)
})

test('a barrier that is re-armed between the read and the mark is not marked', async ({ hf, ask, expired }) => {
  await expired()
  const owner = ownerThat(async () => {
    expect((await rearm(hf)).status).toBe('armed')
    return 'running'
  })
  const { healed, skipped, failed } = await ask(owner)
  expect({ healed, failed, marks: owner.marks }).toEqual({ healed: [], failed: [], marks: [] })
  expect(skipped).toMatchObject([{ barrier: 'run', orphan: 'owned-rearmed', isError: false }])
  expect(await hf.barrier.get('run')).toMatchObject({ status: 'open', arrived: 1 })
})

test('a barrier that was removed and opened anew between the read and the mark is not marked', async ({
  hf,
  query,
  ask,
  expired,
}) => {
  await expired()
  const owner = ownerThat(async () => {
    await hf.barrier.abort('run')
    await rearm(hf)
    // it has even expired again: only the number of its arming tells that the read was about another one
    await expire(query, 'run')
    return 'running'
  })
  await ask({ ...owner, read: once(owner.read, 'no idea') })
  expect(owner.marks).toEqual([])
  expect(await hf.barrier.get('run')).toMatchObject({ status: 'open' })
})

/** Asks once, and answers every later question with this. */
function once(read: Owner['read'], later: string): Owner['read'] {
  let isAsked = false
  return async (...question) => {
    if (isAsked) return later
    isAsked = true
    return read(...question)
  }
}

test.for(['final', 'gone'])(
  'a barrier armed again while its owner says "%s" is not cleaned up',
  async (word, { hf, ask, expired }) => {
    await expired()
    const { healed, skipped } = await ask(
      ownerThat(async () => {
        await rearm(hf)
        return word
      }),
    )
    expect(healed).toEqual([])
    expect(skipped).toMatchObject([{ orphan: 'owned-rearmed' }])
    expect(await hf.barrier.get('run')).toMatchObject({ status: 'open', arrived: 1 })
  },
)

test('a barrier whose last part arrives between the read and the mark is not marked, and fires', async ({
  hf,
  query,
  ask,
  expired,
}) => {
  await expired()
  const owner = ownerThat(async () => {
    expect(await hf.barrier.arrive('run', 'b')).toBe('fired')
    return 'running'
  })
  const { healed, skipped } = await ask(owner)
  expect({ healed, marks: owner.marks }).toEqual({ healed: [], marks: [] })
  expect(skipped).toHaveLength(1)
  expect(await firings(query)).toBe(1)
})

const waiting = (statement: string) =>
  `select from pg_stat_activity where query like '/* ${statement} */%' and wait_event_type = 'Lock'`

test.for([
  { mark: 'done', opens: 'opened', arrived: 0 },
  { mark: 'no', opens: 'armed', arrived: 1 },
])(
  'an arming that comes during a mark answered "$mark" waits, and then is $opens',
  async ({ mark, opens, arrived }, { hf, query, ask, expired }) => {
    await expired()
    let arming: Promise<{ status: string }> | undefined
    const owner = ownerThat('running', async () => {
      arming = rearm(hf)
      await until(async () => (await query(waiting('owned_barrier.open'))).length > 0, 'the arming waits')
      return mark
    })
    await ask(owner, { timeoutMs: 10_000 })
    expect(await arming).toMatchObject({ status: opens })
    expect(await hf.barrier.get('run')).toMatchObject({ status: 'open', arrived })
  },
)

test.for([
  { mark: 'done', answer: 'abandoned', fired: 0 },
  { mark: 'skipped', answer: 'fired', fired: 1 },
])(
  'a last part that comes during a mark answered "$mark" is $answer',
  async ({ mark, answer, fired }, { hf, query, ask, expired }) => {
    await expired()
    let arrival: Promise<string> | undefined
    const owner = ownerThat('running', async () => {
      arrival = hf.barrier.arrive('run', 'b')
      await until(async () => (await query(waiting('owned_barrier.arrive'))).length > 0, 'the arrival waits')
      return mark
    })
    await ask(owner, { timeoutMs: 10_000 })
    expect(await arrival).toBe(answer)
    expect(await firings(query)).toBe(fired)
  },
)

test('arming that races the sweep is never undone: what was armed after its mark began stands', async ({
  hf,
  query,
  ask,
}) => {
  const ids = Array.from({ length: 12 }, (_, n) => `race-${n}`)
  for (const id of ids) {
    await rearm(hf, id)
    await expire(query, id)
  }
  const owner = ownerThat('running', 'done')
  const [armed] = await Promise.all([Promise.all(ids.map((id) => rearm(hf, id))), ask(owner)])
  for (const [index, id] of ids.entries()) {
    const isMarked = owner.marks.some(([execution]) => execution === `exec-${id}`)
    // marked first and then opened anew, or armed first and never marked; in both cases the barrier that was promised is there
    expect(armed[index]?.status).toBe(isMarked ? 'opened' : 'armed')
    expect(await hf.barrier.get(id)).toMatchObject({ status: 'open', arming: armed[index]?.arming })
  }
})

test('an expired barrier without a tenant is kept, and an error is logged', async ({ open, query, expired }) => {
  await expired()
  await query('update holdfast.owned_barrier set tenant = null')
  const { log, told } = listening()
  const owner = ownerThat(() => expect.unreachable('nobody may be asked'))
  const hf = await open({ ...swift, log, owners: { ext: owner } })
  await hf.reap()
  const line = await until(() => told.find(({ message }) => message === 'could not recover an orphan'), 'the error')
  expect(line).toMatchObject({
    level: 'error',
    facts: { barrier: 'run', orphan: 'owned-tenant-missing', reason: expect.stringContaining('has no tenant') },
  })
  expect(owner.reads).toEqual([])
  expect(await hf.barrier.get('run')).toMatchObject({ status: 'open', tenant: null })
})

test('an expired barrier whose owner nobody knows is kept and reported', async ({ open, query, expired }) => {
  await expired()
  await query(`update holdfast.owned_barrier set due_at = now() - interval '1 min'`)
  const { log, told } = listening()
  const hf = await open({ ...swift, log, owners: { other: ownerThat(() => expect.unreachable('not its own')) } })
  await hf.reap()
  const line = await until(() => told.find(({ message }) => message === 'could not recover an orphan'), 'the error')
  expect(line).toMatchObject({
    facts: { barrier: 'run', orphan: 'owner-unknown', reason: expect.stringContaining('"ext"') },
  })
  expect(await hf.barrier.get('run')).toMatchObject({ status: 'open' })
})

test('cleaning up removes exactly what was selected', async ({ hf, query, ask, expired }) => {
  for (const id of ['a1', 'a2']) await expired(id)
  await rearm(hf, 'fresh')
  await hf.barrier.open({ ...plain, id: 'unowned', expires: hour })
  await ask(ownerThat('final'))
  expect(await query('select id from holdfast.owned_barrier order by id')).toEqual([{ id: 'fresh' }, { id: 'unowned' }])
  expect(await query('select distinct barrier_id as id from holdfast.owned_part order by id')).toEqual([
    { id: 'fresh' },
    { id: 'unowned' },
  ])
})

test('one barrier whose owner fails does not block the others', async ({ hf, ask, expired, query }) => {
  for (const id of ['b1', 'b2', 'b3', 'b4']) await expired(id)
  await query(`
    create function holdfast.refuse_poison() returns trigger language plpgsql as $$
    begin raise exception 'poison'; end $$;
    create trigger poison before delete on holdfast.owned_barrier for each row when (old.id = 'b3')
    execute function holdfast.refuse_poison()`)
  const owner: Owner = {
    read: async (execution) => (execution === 'exec-b1' ? Promise.reject(new Error('no')) : 'running'),
    markFailed: async () => 'done',
  }
  const { healed, failed, sweep } = await ask(owner)
  expect(healed.map(({ barrier }) => barrier)).toEqual(['b2', 'b4'])
  expect(failed.map(({ id }) => id)).toEqual(['b1', 'b3'])
  expect(sweep).toMatchObject({ recovered: 2, failed: 2, isSystemic: false })
  expect(await hf.barrier.get('b3')).toMatchObject({ status: 'open' })
})

test('an owner that fails three times in a row is left alone until the next turn', async ({ ask, expired }) => {
  for (let n = 0; n < 6; n++) await expired(`t${n}`)
  const owner = ownerThat(() => Promise.reject(new Error('down')))
  await ask(owner)
  expect(owner.reads).toHaveLength(3)
  await ask(owner)
  expect(new Set(owner.reads.map(([execution]) => execution)).size).toBe(6)
})

interface Line {
  level: string
  message: string
  facts: Record<string, unknown>
}

/** A log that the test reads. */
function listening(): { log: NonNullable<ConnectOptions['log']>; told: Line[] } {
  const told: Line[] = []
  const at = (level: string) => (facts: object, message: string) =>
    void told.push({ level, message, facts: { ...facts } })
  return { log: { debug: () => {}, info: at('info'), warn: at('warn'), error: at('error') }, told }
}

test('a reaper asks the owners of expired barriers by itself', async ({ open, query }) => {
  const owner = ownerThat('running', 'done')
  const hf = await open({ ...swift, owners: { ext: owner } })
  await hf.reap()
  const barrier = { ...plain, id: 'auto', tenant: 'acme', expires: 50, owner: { name: 'ext', execution: 'e' } }
  await hf.barrier.open(barrier)
  await until(async () => (await query('select from holdfast.owned_barrier')).length === 0, 'the barrier is removed')
  expect(owner.marks).toHaveLength(1)
})

test('a sweep of which all owners fail is systemic, and one that skips everything is quiet', async ({
  open,
  query,
  expired,
}) => {
  await expired()
  const quiet = listening()
  const unsure = ownerThat('hard to say')
  const first = await open({ ...swift, log: quiet.log, owners: { ext: unsure } })
  const reaping = await first.reap()
  await until(() => unsure.reads.length > 0, 'the owner is asked')
  await reaping.stop()
  expect(quiet.told.map(({ message }) => message)).toEqual(['became leader', 'stepped down'])
  await query('update holdfast.owned_barrier set due_at = now()')
  const loud = listening()
  const second = await open({
    ...swift,
    log: loud.log,
    owners: { ext: ownerThat(() => Promise.reject(new Error('down'))) },
  })
  await second.reap()
  expect(
    await until(() => loud.told.find(({ message }) => message.startsWith('systemic')), 'it is told'),
  ).toMatchObject({
    level: 'error',
    facts: { failed: 1 },
  })
})

test('an owner that hangs delays neither the revival of jobs, nor other owners, nor a stop', async ({
  open,
  given,
  query,
}) => {
  const asked = gate()
  const hanging = ownerThat(() => {
    asked.open()
    return new Promise(() => {})
  })
  const prompt = ownerThat('running', 'done')
  const hf = await open({ ...swift, owners: { hanging, prompt }, ownerTimeoutMs: 60_000, statementTimeoutMs: 120_000 })
  const barrier = { ...plain, tenant: 'acme', expires: hour }
  await hf.barrier.open({ ...barrier, id: 'h', owner: { name: 'hanging', execution: 'h' } })
  await hf.barrier.open({ ...barrier, id: 'p', owner: { name: 'prompt', execution: 'p' } })
  await expire(query, 'h')
  const reaping = await hf.reap()
  await asked.promise
  const orphan = await given.attemptOfDeadSession()
  await expire(query, 'p')
  await until(async () => (await hf.get(orphan.id))?.state === 'queued', 'the job is revived')
  await until(async () => (await hf.barrier.get('p')) === null, 'the other owner is asked')
  await reaping.stop()
  expect(await hf.barrier.get('h')).toMatchObject({ status: 'open' })
})

interface Heard {
  method: string | undefined
  url: string | undefined
  headers: IncomingMessage['headers']
  body: string
}

/** A server that answers as the test says. */
async function serve(
  answer: (request: Heard, response: ServerResponse) => void,
): Promise<{ base: string; heard: Heard[] }> {
  const heard: Heard[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const one = { method: request.method, url: request.url, headers: request.headers, body }
    heard.push(one)
    answer(one, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/`, heard }
}

const json = (response: ServerResponse, status: number, body: unknown) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

const quick = { timeoutMs: 300, retryMs: 1 }
const question = (execution = 'e1') => ({
  execution,
  tenant: 'acme',
  timeoutMs: 5_000,
  signal: new AbortController().signal,
})

test('an HTTP owner is read and marked for one tenant', async ({ hf, ask, expired }) => {
  await expired()
  const { base: address, heard } = await serve((request, response) =>
    request.method === 'GET'
      ? json(response, 200, { execution: 'exec-run', status: 'busy', more: 1 })
      : json(response, 200, { execution: 'exec-run', answer: 'done' }),
  )
  const owner = httpOwner({ base: address, headers: { authorization: 'Bearer x' }, statuses: { busy: 'running' } })
  expect((await ask(owner)).healed).toMatchObject([{ orphan: 'owned-expired' }])
  expect(heard).toMatchObject([
    { method: 'GET', url: '/api/executions/exec-run', headers: { 'x-tenant-id': 'acme', authorization: 'Bearer x' } },
    { method: 'POST', url: '/api/executions/exec-run/fail', headers: { 'x-tenant-id': 'acme' } },
  ])
  expect(JSON.parse(heard[1]?.body as string)).toEqual({ reason: expect.stringContaining('1 of 2 parts') })
  expect(await hf.barrier.get('run')).toBe(null)
})

test('the tenant of a question is the one that is sent, whatever headers are configured', async () => {
  const { base: address, heard } = await serve((_request, response) =>
    json(response, 200, { execution: 'e1', status: 'final' }),
  )
  const owner = httpOwner({ base: address, headers: { 'X-Tenant-Id': 'other', Accept: 'application/vnd.own+json' } })
  expect(await readStatus(owner, question())).toEqual({ word: 'final' })
  expect(heard[0]?.headers).toMatchObject({ 'x-tenant-id': 'acme', accept: 'application/vnd.own+json' })
})

type Misbehaviour = [name: string, says: RegExp, answer: (response: ServerResponse) => void]
const misbehaviours: Misbehaviour[] = [
  ['answers 500', /answered 500/, (response) => json(response, 500, { execution: 'exec-run', status: 'final' })],
  ['answers 429', /answered 429/, (response) => json(response, 429, { execution: 'exec-run', status: 'final' })],
  ['hangs', /did not answer within/, () => {}],
  ['hangs half-way', /did not answer within/, (response) => void response.writeHead(200).write('{"execution":')],
  ['cuts the wire', /could not be reached/, (response) => void response.destroy()],
  ['answers a page', /unexpected body/, (response) => void response.writeHead(200).end('<html>Sign in</html>')],
  ['answers nothing', /unexpected body/, (response) => void response.writeHead(200).end()],
  ['answers other JSON', /unexpected body/, (response) => json(response, 200, { ok: true })],
  [
    'answers a status that is no text',
    /unexpected body/,
    (response) => json(response, 200, { execution: 'exec-run', status: 7 }),
  ],
  ['answers with a bare 404', /answered 404 with an unexpected body/, (response) => void response.writeHead(404).end()],
  ['answers with the 404 of a proxy', /404/, (response) => json(response, 404, { error: 'no route', status: 'gone' })],
  [
    'says "final" with a 404',
    /404, but with the status/,
    (response) => json(response, 404, { execution: 'exec-run', status: 'final' }),
  ],
  [
    'says "final" with a 401',
    /401, but with the status/,
    (response) => json(response, 401, { execution: 'exec-run', status: 'final' }),
  ],
  [
    'answers about another execution',
    /answered about/,
    (response) => json(response, 200, { execution: 'e2', status: 'final' }),
  ],
  [
    'redirects',
    /unexpected body/,
    (response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
  ],
  [
    'answers without end',
    /more than 65536 bytes/,
    (response) => {
      response.writeHead(200)
      const more = () => {
        if (!response.destroyed && response.write('x'.repeat(16_384))) setImmediate(more)
        else if (!response.destroyed) response.once('drain', more)
      }
      more()
    },
  ],
]

test.for(misbehaviours)(
  'an HTTP owner that %s when it is read marks nothing, and the barrier is kept',
  async ([, says, answer], { hf, ask, expired }) => {
    await expired()
    const { base: address, heard } = await serve((_request, response) => answer(response))
    const { healed, failed } = await ask(httpOwner({ base: address, ...quick }), { timeoutMs: 20_000 })
    expect(healed).toEqual([])
    expect(failed).toMatchObject([
      { id: 'run', orphan: 'owner-unreachable', error: { message: expect.stringMatching(says) } },
    ])
    expect(heard.every(({ method }) => method === 'GET')).toBe(true)
    expect(heard.length).toBeLessThanOrEqual(3)
    expect(await hf.barrier.get('run')).toMatchObject({ status: 'open', arrived: 1 })
  },
)

test.for(misbehaviours)(
  'an HTTP owner that %s when it is to mark is asked once, and the barrier is kept',
  async ([, , answer], { hf, ask, expired }) => {
    await expired()
    const { base: address, heard } = await serve((request, response) =>
      request.method === 'GET' ? json(response, 200, { execution: 'exec-run', status: 'running' }) : answer(response),
    )
    const { healed, failed } = await ask(httpOwner({ base: address, ...quick }), { timeoutMs: 20_000 })
    expect(healed).toEqual([])
    expect(failed).toMatchObject([{ id: 'run', orphan: 'owner-unreachable' }])
    expect(heard.filter(({ method }) => method === 'POST')).toHaveLength(1)
    expect(await hf.barrier.get('run')).toMatchObject({ status: 'open', arrived: 1 })
  },
)

test('an HTTP owner that is not there at all is a read that failed', async ({ ask, expired }) => {
  await expired()
  const { failed } = await ask(httpOwner({ base: 'http://127.0.0.1:1', ...quick }))
  expect(failed).toMatchObject([{ error: { message: expect.stringContaining('could not be reached') } }])
})

test("that an execution is gone is believed only in the owner's own words", async () => {
  const { base: address } = await serve(({ url }, response) =>
    url?.includes('mine')
      ? json(response, 404, { execution: 'mine', status: 'gone' })
      : json(response, 404, { message: 'Not Found' }),
  )
  const owner = httpOwner({ base: address, ...quick })
  expect(await readStatus(owner, question('mine'))).toEqual({ word: 'gone' })
  expect(await readStatus(owner, question('other'))).toMatchObject({ word: 'failed' })
})

test('a read that failed is tried again, a bounded number of times', async () => {
  let failures = 2
  const { base: address, heard } = await serve((_request, response) =>
    failures-- > 0 ? json(response, 503, {}) : json(response, 200, { execution: 'e1', status: 'final' }),
  )
  const owner = httpOwner({ base: address, ...quick })
  expect(await readStatus(owner, question())).toEqual({ word: 'final' })
  expect(heard).toHaveLength(3)
  failures = 99
  expect(await readStatus(owner, question())).toMatchObject({ word: 'failed' })
  expect(heard).toHaveLength(6)
})

test('a slow answer within the time-out is an answer', async () => {
  const { base: address } = await serve((_request, response) => {
    const text = JSON.stringify({ execution: 'e1', status: 'running' })
    response.writeHead(200).write(text.slice(0, 5))
    setTimeout(() => response.end(text.slice(5)), 50)
  })
  expect(await readStatus(httpOwner({ base: address, timeoutMs: 5_000 }), question())).toEqual({ word: 'running' })
})

test('an unknown word of an HTTP owner is unknown, whatever objects inherit', async () => {
  for (const status of ['paused', 'toString', '__proto__', 'constructor']) {
    const { base: address } = await serve((_request, response) => json(response, 200, { execution: 'e1', status }))
    expect(await readStatus(httpOwner({ base: address, ...quick }), question())).toEqual({
      word: 'unknown',
      said: status,
    })
  }
})

test('a mark that the owner refuses with 409 and a "no" of its own is a no, and a "done" with 409 is none', async () => {
  for (const [answer, word] of [
    ['no', 'no'],
    ['skipped', 'skipped'],
    ['done', 'failed'],
  ]) {
    const { base: address } = await serve((_request, response) => json(response, 409, { execution: 'e1', answer }))
    expect(await markFailed(httpOwner({ base: address, ...quick }), question(), 'late')).toMatchObject({ word })
  }
})

test('an execution cannot lead a request to another path', async () => {
  const { base: address, heard } = await serve(({ url }, response) =>
    json(response, 200, { execution: decodeURIComponent(url?.split('/')[3] ?? ''), status: 'running' }),
  )
  const owner = httpOwner({ base: address, ...quick })
  for (const execution of ['../admin', 'a/b?c=d#e', '%2e%2e', 'ü ☃'])
    expect(await readStatus(owner, question(execution))).toEqual({ word: 'running' })
  expect(heard.map(({ url }) => url?.split('/').length)).toEqual([4, 4, 4, 4])
  for (const execution of ['.', '..'])
    expect(await readStatus(owner, question(execution))).toMatchObject({ word: 'failed' })
  expect(heard).toHaveLength(4)
})

test('a question that nobody waits for any more is dropped', async () => {
  const { base: address, heard } = await serve(() => {})
  const stopping = new AbortController()
  const answer = readStatus(httpOwner({ base: address, timeoutMs: 60_000 }), {
    ...question(),
    timeoutMs: 60_000,
    signal: stopping.signal,
  })
  await until(() => heard.length > 0, 'the owner is asked')
  stopping.abort(new Error('enough'))
  expect(await answer).toMatchObject({ word: 'failed', error: { message: 'enough' } })
  expect(await readStatus(ownerThat('final'), { ...question(), signal: stopping.signal })).toMatchObject({
    word: 'failed',
  })
})

test.for(['', 'nowhere', 'ftp://x', 'http://user:secret@x', 'http://x?y=z', 'http://x#y'])(
  'an HTTP owner at %j is refused',
  (address) => {
    expect(() => httpOwner({ base: address })).toThrow('plain http or https URL')
  },
)

test.for([{ timeoutMs: 0 }, { retries: -1 }, { maxBytes: 0.5 }, { retryMs: Number.NaN }])(
  'an HTTP owner with %j is refused',
  (wrong) => {
    expect(() => httpOwner({ base: 'http://x', ...wrong })).toThrow('must be a whole number')
  },
)

test('a process that knows the owner asks it, although one leads that does not', async ({ open, query, expired }) => {
  const leading = await (await open({ ...swift })).reap()
  await until(() => leading.term() !== null, 'a process without owners leads')
  const owner = ownerThat('running', 'done')
  const other = await open({ ...swift, owners: { ext: owner } })
  const reaping = await other.reap()
  await expired()
  await until(async () => (await query('select from holdfast.owned_barrier')).length === 0, 'the barrier is dealt with')
  expect(owner.marks).toMatchObject([['exec-run', 'acme', expect.stringContaining('1 of 2 parts')]])
  expect([leading.term() !== null, reaping.term()]).toEqual([true, null])
})

test('several processes that know an owner ask it once about a barrier', async ({ open, query, expired }) => {
  const owner = ownerThat('running', 'done')
  for (let n = 0; n < 3; n++) await (await open({ ...swift, owners: { ext: owner } })).reap()
  for (const id of ['a', 'b', 'c']) await expired(id)
  await until(async () => (await query('select from holdfast.owned_barrier')).length === 0, 'all are dealt with')
  expect(owner.marks.map(([execution]) => execution).sort()).toEqual(['exec-a', 'exec-b', 'exec-c'])
})

test('after a mark, an event and why tell what was done', async ({ hf, store, query, ask, expired }) => {
  for (const [id, status, end] of [
    ['one', 'running', 'marked'],
    ['two', 'final', 'ended'],
    ['three', 'gone', 'gone'],
  ] as const) {
    await expired(id)
    const job = (await hf.barrier.get(id))?.continuation.job as string
    await ask(ownerThat(status, 'done'))
    expect(await hf.barrier.get(id)).toBeNull()
    const told = { type: 'barrier.expired', data: { barrier: id, end, owner: 'ext', execution: `exec-${id}` } }
    expect(await hf.timeline(job)).toMatchObject([told])
    const why = await hf.why(job)
    expect(why).toMatchObject({ state: null, verdict: { code: 'barrier-given-up' }, repair: null })
    expect(why.verdict.sentence).toContain(
      `"exec-${id}" of owner \`ext\` was ${end === 'marked' ? 'marked failed' : `found ${end}`}`,
    )
    expect(await hf.why(job, { tenant: 'acme' })).toMatchObject({ state: null })
    await expect(hf.why(job, { tenant: 'other' })).rejects.toMatchObject({ code: 'job_not_found' })
  }
  expect((await hf.audit()).violations).toEqual([])
  // a barrier that is opened anew under the same id is another one
  expect(await rearm(hf, 'one')).toMatchObject({ status: 'opened' })
  await query(`update holdfast.owned_end set ended_at = now() - interval '8 d'`)
  await sweepOwned(store)
  expect(await query('select from holdfast.owned_end')).toEqual([])
})
