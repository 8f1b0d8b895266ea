import pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import { prove } from '#holdfast/prove/prove'
import { type FaultProxy, openProxy } from '#holdfast/prove/proxy'
import type { ProxyConnection, Verdict } from '#holdfast/prove/proxy-connection'
import { holds, textOf } from '#holdfast/prove/report'
import { targetOf, throughPort } from '#holdfast/prove/target'
import { test as base, expect, gate, until } from './fixtures.ts'

interface Proxied {
  proxy: FaultProxy
  /** The names of the statements that were sent, in order. */
  names: string[]
  /** Which statements to hold. */
  verdicts: Map<string, Verdict>
  /** The first statement that is held. */
  held: { promise: Promise<ProxyConnection>; open(connection: ProxyConnection): void }
  /** Connects to the test's database through the proxy. */
  connectThrough: () => Promise<pg.Client>
}

const test = base.extend<Proxied>({
  names: async ({ task: _task }, use) => use([]),
  verdicts: async ({ task: _task }, use) => use(new Map()),
  held: async ({ task: _task }, use) => use(gate<ProxyConnection>()),
  proxy: async ({ url, query, names, verdicts, held }, use) => {
    await query('create table note (text text)')
    const proxy = await openProxy(() => targetOf(url), {
      sent({ name }) {
        names.push(name)
        return verdicts.get(name) ?? 'pass'
      },
      held: (_, connection) => held.open(connection),
    })
    await use(proxy)
    await proxy.close()
  },
  connectThrough: async ({ url, proxy }, use) =>
    use(async () => {
      const client = new pg.Client(throughPort(url, proxy.port))
      client.on('error', () => {})
      await client.connect()
      onTestFinished(() => client.end().catch(() => {}))
      return client
    }),
})

const write = (text: string) => ({
  name: 'note.write',
  text: '/* note.write */ insert into note values ($1)',
  values: [text],
})

test('a proxy sees every statement by its name, prepared, commented or bare', async ({
  connectThrough,
  names,
  query,
}) => {
  const client = await connectThrough()
  await client.query(write('first'))
  await client.query(write('second'))
  await client.query('begin')
  await client.query('/* note.count */ select count(*) from note where text <> $1', [''])
  await client.query('commit')
  expect(names).toEqual(['note.write', 'note.write', 'begin', 'note.count', 'commit'])
  expect(await query('select * from note')).toHaveLength(2)
})

test('a proxy passes answers and parameters of many megabytes on unharmed', async ({ connectThrough }) => {
  const client = await connectThrough()
  const text = 'ä'.repeat(8 * 1024 * 1024)
  const { rows } = await client.query('select $1::text as text', [text])
  expect(rows[0].text === text).toBe(true)
})

test('a statement held before is unknown to the server, and stays so when its connection is cut', async ({
  connectThrough,
  verdicts,
  held,
  query,
}) => {
  const client = await connectThrough()
  verdicts.set('note.write', 'before')
  const answer = client.query(write('never')).catch((error) => error)
  const connection = await held.promise
  connection.cut()
  expect(await answer).toBeInstanceOf(Error)
  expect(await query('select * from note')).toEqual([])
})

test('a statement held after is committed although nobody has heard of it', async ({
  connectThrough,
  verdicts,
  held,
  query,
}) => {
  const client = await connectThrough()
  verdicts.set('note.write', 'after')
  const answer = client.query(write('unheard')).catch((error) => error)
  const connection = await held.promise
  expect(await query('select * from note')).toEqual([{ text: 'unheard' }])
  connection.cut()
  expect(await answer).toBeInstanceOf(Error)
})

test('a held answer goes on when it is released', async ({ connectThrough, verdicts, held }) => {
  const client = await connectThrough()
  verdicts.set('note.write', 'after')
  const answer = client.query(write('late'))
  const connection = await held.promise
  connection.release()
  expect((await answer).rowCount).toBe(1)
})

test('what a client sent into a stalled network arrives later, although the client has given up', async ({
  proxy,
  connectThrough,
  names,
  query,
}) => {
  const client = await connectThrough()
  proxy.stall()
  const answer = client.query(write('zombie')).catch((error) => error)
  await until(() => names.includes('note.write'))
  void client.end()
  expect(await query('select * from note')).toEqual([])
  proxy.unstall()
  await until(async () => (await query('select * from note')).length === 1)
  await answer
})

test('a listener behind a black hole hears nothing and notices nothing', async ({ proxy, connectThrough, query }) => {
  const listener = await connectThrough()
  const heard: string[] = []
  listener.on('notification', ({ payload = '' }) => heard.push(payload)).on('end', () => heard.push('end'))
  await listener.query('listen news')
  await query(`notify news, 'before'`)
  await until(() => heard.length === 1)
  proxy.discardNotifications()
  await query(`notify news, 'after'`)
  const other = await connectThrough()
  const told = gate()
  other.on('notification', () => told.open())
  await other.query('listen news')
  await query(`notify news, 'to others'`)
  await told.promise
  expect(heard).toEqual(['before'])
})

test('a proof refuses a database that holds jobs, unless it is forced', async ({ url, given }) => {
  await given.queued()
  await expect(prove({ url, isQuick: true })).rejects.toMatchObject({ code: 'prove_refused' })
})

test('a proof of an unknown cell says which there are', { timeout: 120_000 }, async () => {
  const url = inject('server')
  await expect(prove({ url, cell: 'job.finish × earthquake' })).rejects.toThrow(/kill-before, kill-after/)
})

test('a product that commits what a zombie returned does not pass', { timeout: 120_000 }, async () => {
  const module = new URL('./prove/broken-kinds.mjs', import.meta.url).href
  const report = await prove({ url: inject('server'), module, cell: 'job.advance × cut-after' })
  expect(holds(report)).toBe(false)
  expect(report.passed).toBe(0)
  const broken = report.violations.find(({ cell }) => cell !== null)
  expect(broken?.wrongs.join()).toContain('was not returned by any run of that attempt')
  expect(broken?.reproduce).toMatch(/^holdfast prove --seed 1 --cell "job.advance × cut-after × \d"$/)
  expect(textOf(report)).toContain('✗')
})

test('a slice of the proof: whatever breaks around a settle and a submit, all is well after', {
  timeout: 120_000,
}, async () => {
  const report = await prove({
    url: inject('server'),
    isQuick: true,
    statements: ['job.finish', 'job.submit'],
    lanes: 3,
  })
  expect(report.violations).toEqual([])
  expect(report).toMatchObject({ passed: report.cells, boundMs: expect.any(Number), seed: 1 })
  // a kill after the commit for each, and one fault more, since all of them write
  expect(report.cells).toBeGreaterThanOrEqual(4)
  for (const row of Object.values(report.matrix))
    expect(row['kill-after']).toMatchObject({ recoveryMs: expect.any(Number) })
  expect(report.matrix['job.submit']?.freeze).toEqual({ reason: expect.stringContaining('no lease') })
})

test('a slice of the proof: whatever becomes of a claim of cursors or webhooks, all is handled and sent', {
  timeout: 120_000,
}, async () => {
  const report = await prove({
    url: inject('server'),
    isQuick: true,
    statements: ['cursor.claim', 'delivery.claim'],
    faults: ['kill-after', 'kill-post'],
    lanes: 3,
  })
  expect(report.violations).toEqual([])
  expect(report.passed).toBe(3)
  expect(report.matrix['cursor.claim']?.['kill-post']).toEqual({ reason: 'It sends no webhook.' })
})
