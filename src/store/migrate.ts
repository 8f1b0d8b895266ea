import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import pg from 'pg'
import { HoldfastError } from '../errors/errors.ts'
import { connectionOptions } from './connection.ts'
import { describe } from './describe.ts'
import { layGuards } from './guard.sql.ts'
import { appliedMigrations, layLedger, migrationLock, recordMigration, serverVersion } from './migrate.sql.ts'
import { isTransactionPooler } from './pooler.ts'
import { type Runner, runnerIn, type Store } from './store.ts'

/** One numbered file of migrations/. */
export interface Migration {
  number: number
  name: string
  text: string
  checksum: string
}

const folder = new URL('../../migrations/', import.meta.url)
const oldestServer = 140_000

let reading: Promise<Migration[]> | undefined

/** The migrations that this program knows, in order. They are part of it, so they are read once. */
export function knownMigrations(): Promise<Migration[]> {
  reading ??= readMigrations().catch((error) => {
    reading = undefined
    throw error
  })
  return reading
}

async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}_.*\.sql$/.test(name)).sort()
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, folder), 'utf8')
      return { number: Number(name.slice(0, 4)), name, text, checksum: createHash('sha256').update(text).digest('hex') }
    }),
  )
}

/**
 * Brings the schema up to date and answers which migrations it applied. Many processes may call it at once: an advisory
 * lock lets one through at a time, and each migration commits together with the row that says so.
 */
export async function migrate(url: string): Promise<string[]> {
  let client: pg.Client | undefined
  try {
    client = new pg.Client(connectionOptions(url))
    client.on('error', () => {})
    await client.connect()
    if (await isTransactionPooler(url)) refusePooler()
    const runner = runnerIn(client)
    await checkServer(runner)
    // the lock goes with the connection: unlocking by hand would fail in the transaction that a bad migration has broken
    await runner.run(migrationLock, {})
    return await applyMissing(client, runner)
  } catch (error) {
    throw describe(error, url)
  } finally {
    await client?.end().catch(() => {})
  }
}

function refusePooler(): never {
  throw new HoldfastError(
    'database_unsupported',
    'The database URL leads through a transaction pooler, where the lock that lets one migration through at a time does not hold. Run `holdfast migrate` against the server itself, or through a pooler in session mode.',
  )
}

async function applyMissing(client: pg.Client, runner: Runner): Promise<string[]> {
  if (!(await hasLedger(runner))) {
    await client.query('begin')
    await runner.run(layLedger.schema, {})
    await runner.run(layLedger.table, {})
    await client.query('commit')
  }
  const known = await knownMigrations()
  const missing = missingOf(known, await runner.run(appliedMigrations, {}))
  for (const migration of missing) {
    await client.query('begin')
    await client.query(migration.text)
    await runner.run(recordMigration, migration)
    if (migration === missing.at(-1)) for (const guard of layGuards) await runner.run(guard, {})
    await client.query('commit')
  }
  return missing.map((migration) => migration.name)
}

/** Looked up first, because even a `create … if not exists` that does nothing needs the rights of an owner. */
async function hasLedger(runner: Runner): Promise<boolean> {
  const [ledger] = await runner.run(layLedger.find, {})
  return ledger?.is_there === true
}

/** Refuses to go on unless the schema is the one that this program was made for. */
export async function checkSchema(store: Store): Promise<void> {
  await checkServer(store)
  const missing = missingOf(await knownMigrations(), await store.run(appliedMigrations, {}))
  if (missing.length > 0)
    throw new HoldfastError(
      'schema_older',
      `The database lacks ${missing.map((migration) => migration.name).join(', ')}; run \`holdfast migrate\` first.`,
    )
}

function missingOf(known: Migration[], applied: { number: number; name: string; checksum: string }[]): Migration[] {
  for (const row of applied) {
    const same = known.find((migration) => migration.number === row.number)
    if (!same)
      throw new HoldfastError(
        'schema_newer',
        `The database has the migration ${row.name}, which this version of Holdfast does not know. Update this program, or point it at another database.`,
      )
    if (same.checksum !== row.checksum)
      throw new HoldfastError(
        'schema_changed',
        `The migration ${row.name} was applied with another text than the file has now. Released migrations never change: restore the file, or start from an empty database.`,
      )
  }
  return known.filter((migration) => !applied.some((row) => row.number === migration.number))
}

async function checkServer(runner: Runner): Promise<void> {
  const [server] = await runner.run(serverVersion, {})
  if (server && server.number < oldestServer)
    throw new HoldfastError(
      'database_unsupported',
      `This Postgres is version ${server.text}; Holdfast needs 14 or later.`,
    )
}
