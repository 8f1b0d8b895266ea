import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiDocument } from '#holdfast/http/document'
import { isReached, leaksIn, mustBeDeclared } from './http/answers.ts'
import { type ApiDocument, requestsTo, type Spot, spotsOf } from './http/requests.ts'
import { type Belongings, idsOf, marker, nobodys, poolOf, type TwoTenants, twoTenants } from './http/two-tenants.ts'
import type { Pool } from './http/values.ts'
import { send, type WireAnswer, type WireRequest } from './http/wire.ts'

/** Requests to each operation with each key. More of them, and others, by the environment: HOLDFAST_FUZZ_RUNS=5000 HOLDFAST_FUZZ_SEED=$RANDOM. */
const runs = Number(process.env.HOLDFAST_FUZZ_RUNS ?? 30)
const seed = Number(process.env.HOLDFAST_FUZZ_SEED ?? 20_260_131)
const timeout = 60_000 + runs * 2_000

const document = apiDocument() as ApiDocument
const spots = spotsOf(document)
let world: TwoTenants

beforeAll(async () => {
  world = await twoTenants()
  for (const one of [world.mine, world.theirs]) one.sessions = await sessionsOf(one)
})
afterAll(() => world?.[Symbol.asyncDispose]())

test('whatever a key of a tenant sends is answered as declared, and tells nothing of another tenant', {
  timeout,
}, async () => {
  const { mine, theirs, hookUrl } = world
  const before = await world.rowsOfTheirs()
  const reached = await fuzz(poolOf([mine, theirs], hookUrl), mine.key, (request, answer) =>
    expect(leaksIn(theirs, request, answer)).toEqual([]),
  )
  expect(await world.rowsOfTheirs()).toBe(before)
  expect(spots.map(({ one }) => one.operationId).filter((id) => !reached.has(id))).toEqual([])
})

test('with its own key a tenant sees in its answers what must not be seen in those of others', async () => {
  const { theirs, hookUrl } = world
  const pool = { ...poolOf([theirs], hookUrl), ...onlyOf(theirs), tenant: ['theirs'] }
  const seen = await inTurn(spots, async (spot) => {
    if (spot.method !== 'GET') return []
    const requests = fc.sample(requestsTo(document, spot, pool, theirs.key).fitting, { seed, numRuns: 20 })
    const answers = await Promise.all(requests.map((request) => ask(request)))
    return answers.some((answer) => answer?.text.includes(marker)) ? [spot.one.operationId] : []
  })
  expect(seen.flat()).toEqual(expect.arrayContaining(telling))
})

/** Operations that tell what the test has marked; if one is missing, the marks have lost their worth. */
const telling = [
  'listJobs',
  'getJob',
  'getResult',
  'getTimeline',
  'listItems',
  'listEvents',
  'listWebhooks',
  'getWebhook',
  'listDeliveries',
  'getDelivery',
  'listKeys',
]

test('what another tenant has is answered exactly as what does not exist', { timeout }, async () => {
  const before = await world.rowsOfTheirs()
  const { theirs } = world
  const rounds = Math.max(theirs.jobs.length, theirs.deliveries.length)
  const asked = (await inTurn([...Array(rounds).keys()], differences)).flat()
  expect(asked.filter(({ got, nobodys }) => !isDeepStrictEqual(got, nobodys))).toEqual([])
  // or else the test would compare nothing
  const withIds = spots.filter(({ path }) => path.includes('{id}')).map(({ one }) => one.operationId)
  expect(withIds.filter((id) => !asked.some((one) => one.id === id))).toEqual([])
  expect(await world.rowsOfTheirs()).toBe(before)
})

test('the idempotency keys of another tenant are free', async () => {
  for (const key of [`${marker} key`, `${marker} done`]) {
    const body = Buffer.from(JSON.stringify({ kind: 'idle', input: 'another', key }))
    const headers = [...keyed(world.mine.key), ['content-type', 'application/json'] as const]
    const answer = await send(world.port, { method: 'POST', target: '/v1/jobs', headers, body })
    expect(answer).toMatchObject({ status: 202 })
    expect(answer?.headers['idempotent-replayed']).toBeUndefined()
  }
})

test('whatever a key for all tenants sends is answered as declared', { timeout }, async () => {
  const { mine, theirs, hookUrl, allKey } = world
  const reached = await fuzz(poolOf([mine, theirs], hookUrl), allKey, () => {})
  expect(spots.map(({ one }) => one.operationId).filter((id) => !reached.has(id))).toEqual([])
})

test('streams that were left, or asked for without their body, hold no place of those who wait', async () => {
  const headers = keyed(world.mine.key)
  const open = (method: string) =>
    send(world.port, { method, target: '/v1/events/stream', headers }, { ms: 5_000, streamMs: 5 })
  const statuses: unknown[] = []
  for (let i = 0; i <= world.waits; i++) statuses.push((await open('HEAD'))?.status, (await open('GET'))?.status)
  expect([...new Set(statuses)]).toEqual([200])
})

/** Does something with each of many, a few at a time. */
async function inTurn<T, R>(all: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const left = [...all]
  const done: R[] = []
  await Promise.all(
    Array.from({ length: 6 }, async () => {
      for (let one = left.shift(); one !== undefined; one = left.shift()) done.push(await work(one))
    }),
  )
  return done
}

/** Sends requests of every kind to every operation. Answers which operations got past the checks of the request. */
async function fuzz(
  pool: Pool,
  key: string,
  check: (request: WireRequest, answer: WireAnswer) => void,
): Promise<Set<string>> {
  const reached = new Set<string>()
  const failures = await inTurn(spots, async (spot) => {
    const { fitting, any } = requestsTo(document, spot, pool, key)
    const requests = fc.oneof({ weight: 1, arbitrary: fitting }, { weight: 3, arbitrary: any })
    const property = fc.asyncProperty(requests, async (request) => {
      const answer = await ask(request)
      if (!answer) return
      if (isReached(answer)) reached.add(spot.one.operationId)
      mustBeDeclared(spots, request, answer)
      check(request, answer)
    })
    // each operation has its own seed, or else all of them would be sent the same oddities
    const options = { numRuns: runs, seed: seed + spots.indexOf(spot), includeErrorInReport: true }
    return fc.assert(property, options).then(
      () => null,
      (error: Error) => error.message,
    )
  })
  expect(failures.filter((failure) => failure !== null).join('\n\n')).toBe('')
  return reached
}

/** Who would wait is left waiting after a moment. Nobody else may leave us without an answer, but where we hang up ourselves. */
async function ask(request: WireRequest, isPatient = false): Promise<WireAnswer | null> {
  const { headers, body, framing } = request
  const mayWait = headers.some(([name]) => name === 'prefer') || body?.includes('waitMs') === true
  const isWaiting = mayWait && !isPatient
  const answer = await send(world.port, request, { ms: isWaiting ? 150 : 15_000, streamMs: 40 })
  if (answer === null && !isWaiting && framing !== 'short') throw new Error('There was no answer.')
  return answer
}

const keyed = (key: string) => [['authorization', `Bearer ${key}`] as const]

/** Sends the same fitting requests twice: with what another tenant has, and with what nobody has in its place. */
async function differences(round: number) {
  const { mine, theirs, hookUrl } = world
  const at = (all: readonly unknown[]) => all.slice(round % all.length).slice(0, 1)
  const some: Belongings = { ...theirs, ...Object.fromEntries(idKinds.map((kind) => [kind, at(theirs[kind])])) }
  const others = nobodys(some)
  const asked: { id: string; request: string; got: unknown; nobodys: unknown }[] = []
  for (const spot of spots) {
    const [these, those] = [some, others].map((one) => {
      const pool = { ...poolOf([one], hookUrl), ...onlyOf(one), tenant: ['mine'] }
      return fc.sample(requestsTo(document, spot, pool, mine.key).fitting, { seed: seed + round, numRuns: 2 })
    }) as [WireRequest[], WireRequest[]]
    for (const [index, request] of these.entries()) {
      const other = those[index] as WireRequest
      if (textOf(request) === textOf(other)) continue
      const [first, second] = [await ask(request, true), await ask(other, true)]
      if (first) expect(leaksIn(theirs, request, first)).toEqual([])
      const [got, nobodys] = [plain(first, some), plain(second, others)]
      asked.push({ id: spot.one.operationId, request: textOf(request), got, nobodys })
    }
  }
  return asked
}

const idKinds = ['jobs', 'webhooks', 'deliveries', 'keys', 'sessions'] as const

/** A pool with nothing but what one tenant has. */
function onlyOf({ jobs, webhooks, deliveries, keys, sessions, places }: Belongings): Pool {
  const lists = Object.entries(places).map(([list, all]) => [`places of ${list}`, all])
  return {
    job: jobs,
    webhook: webhooks,
    delivery: deliveries,
    apiKey: keys,
    session: sessions.length > 0 ? sessions : [999_998],
    ...Object.fromEntries(lists.filter(([, all]) => (all as string[]).length > 0)),
  }
}

function textOf({ method, target, headers, body }: WireRequest): string {
  return `${method} ${target} ${headers.join(' ')} ${body ?? ''}`
}

/** An answer without what is of this request alone: the id that was asked for, that of the request, and the word for where a stream begins. */
function plain(answer: WireAnswer | null, asked: Belongings): unknown {
  if (!answer) return null
  const { 'x-request-id': requestId = 'none', date: _, 'content-length': __, ...headers } = answer.headers
  const ids = [...idsOf(asked), requestId]
  const same = (text: string) => ids.reduce((left, id) => left.replaceAll(id, 'ID'), text)
  const body = answer.body.replace(/^retry: 1000\nid: [\w-]+\n/, 'retry: 1000\nid: PLACE\n')
  return [answer.status, same(body), same(JSON.stringify(headers))]
}

/** Opens sessions with the key of a tenant, where there is an operation for it. */
async function sessionsOf({ key }: Belongings): Promise<string[]> {
  const spot = spots.find(({ one }) => one.operationId === 'openSession')
  if (!spot) return []
  const requests = fc.sample(requestsTo(document, spot as Spot, poolOf([world.mine], world.hookUrl), key).fitting, {
    seed,
    numRuns: 20,
  })
  const answers = await Promise.all(requests.map((request) => ask(request)))
  return answers.filter((answer) => answer?.status === 201).map((answer) => JSON.parse(answer?.body ?? '{}').id)
}
