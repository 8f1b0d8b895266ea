import { randomBytes } from 'node:crypto'
import net from 'node:net'
import { connect, defineJob } from 'holdfast'
import { inject, onTestFinished } from 'vitest'
import type { Log } from '#holdfast/engine/log'
import { call } from './cli/command.ts'
import { test as base, expect, newDatabase, until } from './fixtures.ts'
import { holdTable } from './hold.ts'
import { makeWire } from './wire.ts'

const greet = defineJob('greet', { run: () => null })

interface Named {
  /** The name of the test's database. */
  database: string
}

const test = base.extend<Named>({ database: async ({ url }, use) => use(new URL(url).pathname.slice(1)) })

/** Lets every new job meet an error that the server would raise by itself in trouble that no test can make. */
const raise = (code: string, message: string) => `
  create function trouble() returns trigger language plpgsql as $$
    begin raise exception using errcode = '${code}', message = '${message}'; end $$;
  create trigger trouble before insert on holdfast.ready for each row execute function trouble()`

test('a read-only database is told from one that is away', async ({ url, database, query }) => {
  await query(`alter database ${database} set default_transaction_read_only = on`)
  const hf = await connect({ url, logLevel: 'silent', jobs: [greet] })
  onTestFinished(() => hf.close())
  await expect(hf.submit(greet, null)).rejects.toMatchObject({
    code: 'database_read_only',
    message: expect.stringMatching(/^The database at \S+ is read-only: .* Connect to the primary/),
  })
})

test('migrating a read-only database says so', async () => {
  const { url, drop } = await newDatabase('empty')
  onTestFinished(drop)
  const readOnly = `${url}?options=-c%20default_transaction_read_only%3Don`
  const { code, stderr } = await call(['migrate', '--url', readOnly])
  expect(stderr).toMatch(/^error database_read_only: The database at \S+ is read-only/)
  expect(code).toBe(1)
})

test('a statement that the server ends for its length is a timeout, and the setting of the server is named', async ({
  url,
  database,
  query,
  pool,
}) => {
  await query(`alter database ${database} set statement_timeout = '200ms'`)
  const release = await holdTable(pool, 'api_key')
  onTestFinished(release)
  const hf = await connect({ url, logLevel: 'silent' })
  onTestFinished(() => hf.close())
  await expect(hf.keys.create({ name: 'any', scopes: ['read'], tenant: 'acme' })).rejects.toMatchObject({
    code: 'database_timeout',
    message: expect.stringMatching(/statement_timeout of this server.*It had no effect/),
  })
})

test('a statement that is not answered in our own time is a timeout, and our setting is named', async ({
  url,
  pool,
}) => {
  const hf = await connect({ url, logLevel: 'silent', jobs: [greet], statementTimeoutMs: 1_000 })
  onTestFinished(() => hf.close())
  const release = await holdTable(pool, 'api_key')
  onTestFinished(release)
  await expect(hf.keys.create({ name: 'any', scopes: ['read'], tenant: 'acme' })).rejects.toMatchObject({
    code: 'database_timeout',
    message: expect.stringMatching(/did not answer .*HOLDFAST_STATEMENT_TIMEOUT_MS/),
  })
})

test('a host that accepts connections and never answers is told as such, by every command', async () => {
  const silent = net.createServer(() => {}).listen(0, '127.0.0.1')
  onTestFinished(() => void silent.close())
  await new Promise((resolve) => silent.once('listening', resolve))
  const { port } = silent.address() as net.AddressInfo
  const url = `postgres://me:secret@127.0.0.1:${port}/jobs?connect_timeout=1`
  for (const command of ['migrate', 'jobs']) {
    const { code, stderr } = await call([command, '--url', url])
    expect(stderr).toMatch(
      /^error database_unreachable: The database at postgres:\/\/me:\*\*\*@127\.0\.0\.1:\d+\/jobs\S* did not answer within 1 s\. /,
    )
    expect(code).toBe(1)
  }
})

test('a server without a free connection says whose limit it is', async ({ url, query }) => {
  const role = await newRole(query, 'connection limit 0')
  await expect(connect({ url: asRole(url, role), logLevel: 'silent' })).rejects.toMatchObject({
    code: 'database_overloaded',
    message: expect.stringMatching(/run out of connections.*too many connections for role/),
  })
})

test('a full disk is told with what is full, what to free, and that nothing is lost', async ({ open, query }) => {
  const hf = await open({ jobs: [greet] })
  await query(raise('53100', 'could not extend file "base/5/16384": No space left on device'))
  await expect(hf.submit(greet, null)).rejects.toMatchObject({
    code: 'database_full',
    message: expect.stringMatching(
      /^The disk of the database server at \S+ is full \(could not extend file .*\)\. Free space .* Nothing that was committed is lost/,
    ),
  })
})

test('a server that is out of memory is told as such', async ({ open, query }) => {
  const hf = await open({ jobs: [greet] })
  await query(raise('53200', 'out of shared memory'))
  await expect(hf.submit(greet, null)).rejects.toMatchObject({
    code: 'database_overloaded',
    message: expect.stringMatching(/ran out of memory \(out of shared memory\)/),
  })
})

test('a URL without the password that the server wants says where to put it', async ({ url }) => {
  const bare = new URL(url)
  bare.password = ''
  await expect(connect({ url: bare.href, logLevel: 'silent' })).rejects.toMatchObject({
    code: 'database_refused',
    message: expect.stringMatching(/requires a password.*PGPASSWORD/),
  })
})

test('a wrong password, an unknown database and TLS that the server lacks are each told', async ({ url }) => {
  const changed = (part: 'password' | 'pathname' | 'search', value: string) => {
    const other = new URL(url)
    other[part] = value
    return other.href
  }
  const cases: [string, RegExp][] = [
    [changed('password', 'wrong'), /rejected the password/],
    [changed('pathname', '/no_such_database'), /has no database "no_such_database".*createdb/],
    [changed('search', '?sslmode=verify-full'), /does not support TLS.*sslmode/],
    [changed('search', '?sslrootcert=/no/such/ca.crt'), /\/no\/such\/ca\.crt.*cannot be read/],
  ]
  for (const [wrong, sentence] of cases)
    await expect(connect({ url: wrong, logLevel: 'silent' }), wrong).rejects.toMatchObject({
      code: 'database_refused',
      message: expect.stringMatching(sentence),
    })
})

test('a user without rights is told which right is missing, not that the database is away', async ({ url, query }) => {
  const role = await newRole(query, '')
  await expect(connect({ url: asRole(url, role), logLevel: 'silent' })).rejects.toMatchObject({
    code: 'database_forbidden',
    message: expect.stringMatching(/permission denied for schema holdfast.*grant/i),
  })
})

test('an outage is logged once for all parts of a worker, in one line without a stack, and then counted', async ({
  url,
}) => {
  const wire = await makeWire(url)
  const { log, lines } = collect()
  const hf = await connect({ url: wire.url, jobs: [greet], log, pollMs: 100, heartbeatMs: 200, drainMs: 500 })
  onTestFinished(() => hf.close())
  await hf.work()
  wire.refuse()
  await until(() => lines.filter(({ repeated }) => repeated !== undefined).length >= 1, 'the rest was counted', 30_000)
  wire.reconnect()
  const first = lines.filter(({ reason, repeated }) => reason !== undefined && repeated === undefined)
  const said = first.map(({ reason }) => reason)
  expect(said.length).toBeGreaterThan(0)
  expect(said).toEqual([...new Set(said)])
  for (const line of lines) expect(line).not.toHaveProperty('err')
})

/** A role with a password that is not the owner of anything. */
async function newRole(query: (text: string) => Promise<unknown>, options: string): Promise<string> {
  const role = `holdfast_${randomBytes(6).toString('hex')}`
  await query(`create role ${role} login password 'secret' ${options}`)
  onTestFinished(async () => {
    const { default: pg } = await import('pg')
    const client = new pg.Client(inject('server'))
    await client.connect()
    await client.query(`drop role ${role}`)
    await client.end()
  })
  return role
}

function asRole(url: string, role: string): string {
  const other = new URL(url)
  other.username = role
  other.password = 'secret'
  return other.href
}

interface Line {
  message: string
  reason?: string
  repeated?: number
}

function collect(): { log: Log; lines: Line[] } {
  const lines: Line[] = []
  const take = (facts: object, message: string) => void lines.push({ ...facts, message })
  return { log: { debug: () => {}, info: () => {}, warn: take, error: take }, lines }
}
