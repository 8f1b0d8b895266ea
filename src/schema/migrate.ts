import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import type pg from 'pg'
import { version } from '../config/version.ts'
import { HoldfastError } from '../errors/errors.ts'
import { Client, connectionOptions, isLocked } from '../postgres/connection.ts'
import { lockedError } from '../postgres/contended.ts'
import { describe } from '../postgres/error-message.ts'
import { isTransactionPooler } from '../postgres/pooler.ts'
import { type Runner, runnerIn, type Store } from '../postgres/store.ts'
import { pause } from '../service/service.ts'
import { type Definition, missingDefinitions, outdatedDefinitions } from './definitions.ts'
import {
  appliedDefinitions,
  appliedMigrations,
  ledger,
  migrationLock,
  migrationLockHolder,
  recordDefinition,
  recordMigration,
  serverVersion,
} from './migrate.sql.ts'

/** One numbered file of migrations/. */
export interface Migration {
  number: number
  name: string
  text: string
  checksum: string
}

const folder = new URL('../../migrations/', import.meta.url)
const oldestServer = 140_000
const longestWaitMs = 60_000
const lockPollMs = 50
/** How long a migration waits for a table, and then pauses: all other statements that need the table wait behind it. */
const tableWait = { lockMs: 200, pauseMs: 1_000 }

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
 * Brings the schema up to date and returns the names of what was applied: migrations, or, if none was missing, the definitions that have
 * changed. Many processes may call it at once: an advisory lock lets one through at a time, and each migration commits together with the row
 * that records it.
 */
export async function migrate(url: string, { waitMs = longestWaitMs } = {}): Promise<string[]> {
  let client: pg.Client | undefined
  try {
    client = new Client(connectionOptions(url))
    client.on('error', () => {})
    await client.connect()
    if (await isTransactionPooler(url)) refusePooler()
    const runner = runnerIn(client)
    await checkServer(runner)
    // the lock goes with the connection: unlocking by hand would fail in the transaction that a bad migration has broken
    await lockMigrations(runner, waitMs)
    return await applyMissing(client, runner, performance.now() + waitMs)
  } catch (error) {
    throw describe(error, url)
  } finally {
    await client?.end().catch(() => {})
  }
}

/** Waits for another process that migrates, but not forever: the number of the lock may be in use by an application, too. */
async function lockMigrations(runner: Runner, waitMs: number): Promise<void> {
  const untilMs = performance.now() + waitMs
  for (;;) {
    const [lock] = await runner.run(migrationLock, {})
    if (lock?.is_locked) return
    if (performance.now() > untilMs) throw lockIsHeld(waitMs, await runner.run(migrationLockHolder, {}))
    await pause(lockPollMs)
  }
}

function lockIsHeld(waitMs: number, [holder]: { pid: number; application: string | null }[]): HoldfastError {
  const name = holder?.application ? `, application ${JSON.stringify(holder.application)}` : ''
  return new HoldfastError(
    'database_timeout',
    `Waited ${waitMs / 1000} s for the migration lock of this database, which another connection holds (pid ${holder?.pid ?? 'unknown'}${name}). If it is migrating, try again later. If not, end it with pg_terminate_backend.`,
    { details: { pid: holder?.pid ?? null } },
  )
}

function refusePooler(): never {
  throw new HoldfastError(
    'database_unsupported',
    'The database URL points to a transaction pooler, where the lock that serializes migrations does not work. Run `holdfast migrate` directly against the server, or through a pooler in session mode.',
  )
}

async function applyMissing(client: pg.Client, runner: Runner, untilMs: number): Promise<string[]> {
  if (!(await hasLedger(runner))) await inTransaction(client, untilMs, () => createLedger(runner))
  const missing = missingOf(await knownMigrations(), await runner.run(appliedMigrations, {}))
  for (const migration of missing)
    await inTransaction(client, untilMs, async () => {
      await client.query(migration.text)
      await runner.run(recordMigration, migration)
      // with the last of them, so that no process ever meets tables without their guards
      if (migration === missing.at(-1)) await replace(runner, await outdatedIn(runner))
    })
  return missing.length > 0 ? missing.map(({ name }) => name) : replaceOutdated(client, runner, untilMs)
}

/** Reads before it opens a transaction: replacing needs the privileges of the owner, and finding nothing to replace must not. */
async function replaceOutdated(client: pg.Client, runner: Runner, untilMs: number): Promise<string[]> {
  const outdated = await outdatedIn(runner)
  if (outdated.length > 0) await inTransaction(client, untilMs, () => replace(runner, outdated))
  return outdated.map(({ name }) => name)
}

async function replace(runner: Runner, outdated: readonly Definition[]): Promise<void> {
  for (const { name, checksum, statement } of outdated) {
    await runner.run(statement, {})
    await runner.run(recordDefinition, { name, checksum, version })
  }
}

async function outdatedIn(runner: Runner): Promise<Definition[]> {
  return outdatedDefinitions(await runner.run(appliedDefinitions, {}))
}

/**
 * Runs `work` in a transaction, again and again while another transaction has locked a table that it changes, for example a backup. An error
 * leaves the transaction open; it ends with the connection.
 */
async function inTransaction(client: pg.Client, untilMs: number, work: () => Promise<void>): Promise<void> {
  for (;;)
    try {
      await client.query(`begin; set local lock_timeout = ${tableWait.lockMs}`)
      await work()
      await client.query('commit')
      return
    } catch (error) {
      if (!isLocked(error)) throw error
      if (performance.now() > untilMs) throw lockedError('A table that the migration changes', error)
      await client.query('rollback')
      await pause(tableWait.pauseMs)
    }
}

async function createLedger(runner: Runner): Promise<void> {
  await runner.run(ledger.schema, {})
  await runner.run(ledger.table, {})
}

/** Looked up first, because even a `create … if not exists` that does nothing needs the privileges of the owner. */
async function hasLedger(runner: Runner): Promise<boolean> {
  const [found] = await runner.run(ledger.find, {})
  return found?.is_there === true
}

/** What `migrate` would apply. */
export async function pendingIn(runner: Runner): Promise<string[]> {
  await checkServer(runner)
  const known = await knownMigrations()
  if (!(await hasLedger(runner))) return known.map(({ name }) => name)
  const missing = missingOf(known, await runner.run(appliedMigrations, {}))
  return (missing.length > 0 ? missing : await outdatedIn(runner)).map(({ name }) => name)
}

/**
 * Refuses to go on unless the schema is the one that this program was written for. Definitions may be from an older or a newer version, as
 * long as none is missing: each works for every version that knows it.
 */
export async function checkSchema(store: Store): Promise<void> {
  await checkServer(store)
  const migrations = missingOf(await knownMigrations(), await store.run(appliedMigrations, {}))
  const missing = migrations.length > 0 ? migrations : missingDefinitions(await store.run(appliedDefinitions, {}))
  if (missing.length > 0)
    throw new HoldfastError(
      'schema_older',
      `The database lacks ${missing.map(({ name }) => name).join(', ')}; run \`holdfast migrate\` first.`,
    )
}

function missingOf(known: Migration[], applied: { number: number; name: string; checksum: string }[]): Migration[] {
  refuseUnreleased(known, applied)
  for (const row of applied) {
    const same = known.find((migration) => migration.number === row.number)
    if (!same)
      throw new HoldfastError(
        'schema_newer',
        `The database has the migration ${row.name}, which this version of Holdfast does not have. Update Holdfast, or point it at another database.`,
      )
    if (same.checksum !== row.checksum)
      throw new HoldfastError(
        'schema_changed',
        `The migration ${row.name} differs from the file that was applied. Released migrations never change: restore the file, or start from an empty database.`,
      )
  }
  return known.filter((migration) => !applied.some((row) => row.number === migration.number))
}

/** Pre-release versions had other tables, from other files. Nothing moves jobs from those to these. */
function refuseUnreleased(known: Migration[], applied: { number: number; name: string }[]): void {
  const first = applied.find(({ number }) => number === 1)
  if (!first || known.some(({ name }) => name === first.name)) return
  throw new HoldfastError(
    'schema_unreleased',
    `The tables of this database were created by a pre-release version (${first.name}), and its jobs cannot be migrated. Let that version finish its queued and running jobs. Then, if you no longer need the data, run \`drop schema holdfast cascade\` and \`holdfast migrate\`; or point Holdfast at another database.`,
  )
}

async function checkServer(runner: Runner): Promise<void> {
  const [server] = await runner.run(serverVersion, {})
  if (server && server.number < oldestServer)
    throw new HoldfastError(
      'database_unsupported',
      `This Postgres is version ${server.text}; Holdfast needs 14 or later.`,
    )
  // checked and not set, because poolers refuse these as parameters of a connection
  if (server && (!server.has_array_nulls || server.float_digits < 0))
    throw new HoldfastError(
      'database_unsupported',
      `The database or its user sets array_nulls = ${server.has_array_nulls ? 'on' : 'off'} and extra_float_digits = ${server.float_digits}; Holdfast needs array_nulls = on, and extra_float_digits of at least 0. Remove these settings with \`alter role … reset\` or \`alter database … reset\`.`,
    )
  if (server?.filtered)
    throw new HoldfastError(
      'database_unsupported',
      `Row-level security hides rows of the schema holdfast from this database user (${server.filtered.join(', ')}), so jobs would wait without being claimed. Turn it off with \`alter table holdfast.${server.filtered[0]} disable row level security\`, or give the user BYPASSRLS.`,
    )
  if (server?.is_cached)
    throw new HoldfastError(
      'database_unsupported',
      'The sequence holdfast.event_seq has a cache, so events could be numbered late and readers would miss them. Remove it with `alter sequence holdfast.event_seq cache 1`.',
    )
}
