import { randomUUID } from 'node:crypto'
import { connect, defineJob, type Holdfast, PermanentError } from 'holdfast'
import pg from 'pg'
import { readConfig } from '#holdfast/config/config'
import { makeLog } from '#holdfast/engine/log'
import { makeHttpServer } from '#holdfast/http/server'
import { newDatabase, quick } from '../fixtures.ts'
import { until } from '../until.ts'
import { receiver } from '../webhooks/receiver.ts'
import type { Pool } from './values.ts'
import { send } from './wire.ts'

/** Part of everything that belongs to tenant `theirs`, and must not be visible to any other. */
export const marker = 'MARK-OF-THEIRS'

const echo = defineJob('echo', {
  run: (ctx) => {
    ctx.progress(1, 2, (ctx.input as { mark: string }).mark)
    return ctx.input as unknown
  },
})
const broken = defineJob('broken', {
  retries: 0,
  run: ({ input }) => {
    throw new PermanentError(`It broke: ${JSON.stringify(input)}`)
  },
})
const spread = defineJob('spread', {
  stages: [
    {
      name: 'all',
      fanOut: (_ctx, input) => [1, 2, 3].map((number) => ({ number, mark: (input as { mark: string }).mark })),
      key: (item: { number: number; mark: string }) => `${item.mark} ${item.number}`,
      tolerate: { count: 1 },
      each: (_ctx, item: { number: number; mark: string }) => {
        if (item.number === 3) throw new PermanentError(item.mark)
        return item
      },
    },
  ],
})
/** No worker takes these. */
const idle = defineJob('idle', { queue: 'idle', run: () => null })

/** What one tenant has. */
export interface Belongings {
  key: string
  jobs: string[]
  webhooks: string[]
  deliveries: string[]
  keys: string[]
  /** Those that its key has opened over HTTP. */
  sessions: string[]
  /** Cursors and ids of events, by the path of their list. */
  places: Record<string, string[]>
}

/** A server with two tenants behind it. */
export interface TwoTenants extends AsyncDisposable {
  port: number
  hf: Holdfast
  mine: Belongings
  theirs: Belongings
  /** A key for all tenants. */
  allKey: string
  /** A receiver of webhooks. */
  hookUrl: string
  /** How many requests of a key may wait at once. */
  waits: number
  /** Everything in the database that belongs to tenant `theirs`, as text. */
  rowsOfTheirs(): Promise<string>
}

/** Makes a server on a database where two tenants have jobs in every state, webhooks, deliveries and keys. */
export async function twoTenants(): Promise<TwoTenants> {
  const database = await newDatabase()
  const hook = await receiver((response, { body }) =>
    response.writeHead(body.includes('failed') ? 410 : 200).end(body.includes(marker) ? marker : 'thanks'),
  )
  const settings = {
    ...quick,
    webhookAllow: ['127.0.0.1/32'],
    httpPort: 0,
    httpRate: 1_000_000,
    httpWaits: 50,
  } as const
  const hf = await connect({ url: database.url, ...settings, jobs: [echo, broken, spread, idle] })
  const db = new pg.Pool({ connectionString: database.url, max: 2 })
  const reading = await hf.events.subscribe('audit', { from: 'beginning', failures: 1, backoffMs: 1 }, ({ type }) => {
    if (type === 'job.failed') throw new Error('not that one')
  })
  const work = await hf.work({ queues: ['default'] })
  const made = [await belongingsOf(hf, 'mine', 'mine', hook.url), await belongingsOf(hf, 'theirs', marker, hook.url)]
  await until(async () => (await db.query(unsettled)).rows.length === 0, 'all jobs and deliveries are settled')
  await work.stop()
  await reading.stop()
  for (const [one, tenant, mark] of [
    [made[0], 'mine', 'mine'],
    [made[1], 'theirs', marker],
  ] as const) {
    const input = { mark }
    const waiting = await hf.submit(idle, input as never, { tenant, key: `${mark} key`, meta: input })
    const later = await hf.submit(echo, input as never, { tenant, delayMs: 86_400_000, meta: input })
    one?.jobs.push(waiting.id, later.id)
    const { rows } = await db.query('select id from holdfast.delivery where tenant = $1', [tenant])
    one?.deliveries.push(...rows.map(({ id }) => id))
    const { rows: items } = await db.query(
      `select id from holdfast.job_status where finished_at is not null and tenant = $1 and not id = any($2::uuid[]) limit 3`,
      [tenant, one?.jobs],
    )
    one?.jobs.push(...items.map(({ id }) => id))
  }
  const { key: allKey } = await hf.keys.create({ name: 'all', scopes: ['admin'], tenant: null })
  const server = makeHttpServer({
    engine: () => hf,
    config: readConfig({ ...settings, url: database.url }, {}),
    log: makeLog('silent'),
  })
  await server.start()
  const port = Number(new URL(server.url()).port)
  for (const one of made) one.places = await placesOf(port, one)
  const [mine, theirs] = made as [Belongings, Belongings]
  return {
    port,
    hf,
    mine,
    theirs,
    allKey,
    hookUrl: hook.url,
    waits: settings.httpWaits,
    rowsOfTheirs: () => rowsOf(db, 'theirs'),
    async [Symbol.asyncDispose]() {
      await server.stop()
      await hf.close()
      await db.end()
      await hook[Symbol.asyncDispose]()
      await database.drop()
    },
  }
}

const unsettled = `select 1 from holdfast.job_status where finished_at is null and queue <> 'idle'
  union all select 1 from holdfast.delivery where state = 'pending'
  union all select 1 where not exists (select from holdfast.delivery)
  union all select 1 where not exists (select from holdfast.parked_event)`

async function belongingsOf(hf: Holdfast, tenant: string, mark: string, url: string): Promise<Belongings> {
  const input = { mark } as never
  const { key, id } = await hf.keys.create({ name: `${mark} first`, scopes: ['admin'], tenant })
  const other = await hf.keys.create({ name: `${mark} other`, scopes: ['submit', 'read', 'work', 'operate'], tenant })
  const gone = await hf.keys.create({ name: `${mark} gone`, scopes: ['read'], tenant })
  await hf.keys.revoke(gone.id)
  const webhook = { url: `${url}/${mark}`, note: mark, headers: { 'x-mark': mark }, tenant }
  const good = await hf.webhooks.create({ ...webhook, items: true })
  const off = await hf.webhooks.create(webhook)
  await hf.webhooks.disable(off.id, { why: mark })
  const meta = { mark }
  const jobs = [
    await hf.submit(echo, input, { tenant, meta, key: `${mark} done` }),
    await hf.submit(broken, input, { tenant, meta }),
    await hf.submit(spread, input, { tenant, meta }),
  ]
  const cancelled = await hf.submit(idle, input, { tenant, meta })
  await hf.cancel(cancelled.id, { reason: mark })
  return {
    key,
    jobs: [...jobs, cancelled].map((one) => one.id),
    webhooks: [good.id, off.id],
    deliveries: [],
    // never its own: a test that revokes its own key learns nothing more
    keys: tenant === 'theirs' ? [id, other.id, gone.id] : [other.id, gone.id],
    sessions: [],
    places: {},
  }
}

async function placesOf(port: number, { key, jobs }: Belongings): Promise<Record<string, string[]>> {
  const lists = [
    '/v1/jobs',
    '/v1/events',
    '/v1/webhooks',
    '/v1/deliveries',
    '/v1/kinds',
    '/v1/jobs/{id}/timeline',
    '/v1/jobs/{id}/items',
  ]
  const places: Record<string, string[]> = {}
  const headers = [['authorization', `Bearer ${key}`] as const]
  for (const list of lists) {
    const paths = list.includes('{id}') ? jobs.map((id) => list.replace('{id}', id)) : [list]
    for (const path of paths) {
      const answer = await send(port, { method: 'GET', target: `${path}?limit=1`, headers })
      const page = JSON.parse(answer?.body ?? '{}')
      const found = [page.next, ...(page.events ?? []).map((event: { id: string }) => event.id)]
      places[list] = [...(places[list] ?? []), ...found.filter((place) => typeof place === 'string')]
    }
  }
  return places
}

/** Every row of every table that names the tenant or one of its jobs. When a key was last used is noted late, and no secret. */
async function rowsOf(db: pg.Pool, tenant: string): Promise<string> {
  const { rows: tables } = await db.query(
    `select table_name as name, array_agg(column_name::text) as columns from information_schema.columns
    where table_schema = 'holdfast'
    group by 1 order by 1`,
  )
  const all: unknown[] = []
  for (const { name, columns } of tables as { name: string; columns: string[] }[]) {
    const by = columns.includes('tenant')
      ? 'tenant = $1'
      : columns.includes('job_id')
        ? `job_id in (select id from holdfast.job_status where finished_at is null and tenant = $1 union select id from holdfast.job_status where finished_at is not null and tenant = $1)`
        : null
    if (by === null) continue
    const { rows } = await db.query(
      `select to_jsonb(t) - 'used_at' as row from holdfast.${name} t where ${by} order by to_jsonb(t)::text`,
      [tenant],
    )
    all.push([name, rows])
  }
  return JSON.stringify(all, null, 1)
}

/** Values for requests that find what these tenants have, beside what is nobody's. Those named first are found more often. */
export function poolOf(all: readonly Belongings[], url: string): Pool {
  const [first] = all as [Belongings]
  const each = (what: 'jobs' | 'webhooks' | 'deliveries' | 'keys') => [
    ...first[what],
    ...first[what],
    ...all.flatMap((one) => one[what]),
    randomUUID(),
  ]
  const lists = Object.keys(first.places).map((list) => [
    `places of ${list}`,
    [...(first.places[list] ?? []), ...all.flatMap((one) => one.places[list] ?? []), 'AAAA', '1'],
  ])
  return {
    job: each('jobs'),
    webhook: each('webhooks'),
    delivery: each('deliveries'),
    apiKey: each('keys'),
    session: [...first.sessions, ...all.flatMap((one) => one.sessions), 'AAAA', '999999'],
    kind: ['echo', 'broken', 'spread', 'idle', 'idle', 'nobody'],
    // kinds that remote workers bring
    name: ['echo', 'idle', 'remote'],
    queue: ['default', 'idle', 'nobody'],
    group: ['audit', 'webhooks', 'nobody'],
    tenant: ['mine', 'mine', 'mine', 'theirs', 'nobody'],
    url: [`${url}/hook`],
    ...Object.fromEntries(lists),
  }
}

/** What has the same shape, and exists nowhere. */
export function nobodys({ places, ...one }: Belongings): Belongings {
  const other = (ids: string[]) => ids.map(() => randomUUID())
  // well-formed as far as anybody can see, but sealed by nobody
  const reversed = (all: string[]) =>
    all.map((place) => Buffer.from(place, 'base64url').reverse().toString('base64url'))
  return {
    ...one,
    jobs: other(one.jobs),
    webhooks: other(one.webhooks),
    deliveries: other(one.deliveries),
    keys: other(one.keys),
    sessions: reversed(one.sessions),
    places: Object.fromEntries(Object.entries(places).map(([list, all]) => [list, reversed(all)])),
  }
}

/** Every id of what a tenant has, and every place that it was told. */
export function idsOf({ jobs, webhooks, deliveries, keys, sessions, places }: Belongings): string[] {
  return [...jobs, ...webhooks, ...deliveries, ...keys, ...sessions, ...Object.values(places).flat()]
}
