import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import { appliedMigrations } from '../store/migrate.sql.ts'
import { checkSchema, knownMigrations, migrate } from '../store/migrate.ts'
import { openStore, type Store } from '../store/store.ts'
import { urlOf } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { paint, print } from './terminal.ts'

interface Flags {
  check?: true
  json?: true
}

/** Adds `holdfast migrate`. */
export function addMigrate(program: Command): void {
  const command = program
    .command('migrate')
    .description('Bring the database schema up to date. Several processes may do so at once.')
    .option('--check', 'Change nothing; say what is missing, and end with code 1 if something is.')
    .action((flags: Flags) => (flags.check ? check(flags) : apply(flags)))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast migrate --url postgres://user:password@host/database', 'before a new version starts'],
    ['holdfast migrate --check', 'in a deployment, to be sure'],
  ])
}

async function apply(flags: Flags): Promise<void> {
  const applied = await migrate(await urlOf(configOf({ ...flags })))
  if (flags.json) return print(JSON.stringify({ applied }, null, 2))
  for (const name of applied) print(`${paint('green', 'applied')}  ${name}`)
  if (applied.length === 0) print('The schema is up to date.')
}

async function check(flags: Flags): Promise<void> {
  const missing = await missingIn(configOf({ ...flags }))
  if (missing.length > 0) process.exitCode = 1
  if (flags.json) return print(JSON.stringify({ missing }, null, 2))
  for (const name of missing) print(`${paint('yellow', 'missing')}  ${name}`)
  if (missing.length === 0) print('The schema is up to date.')
}

async function missingIn(config: Config): Promise<string[]> {
  const { pooled: isPooled, statementTimeoutMs } = config
  const store = openStore({ url: await urlOf(config), poolSize: 1, isPooled, statementTimeoutMs })
  try {
    await checkSchema(store)
    return []
  } catch (error) {
    if (isIncomplete(error)) return await namesMissing(store)
    throw error
  } finally {
    await store.close()
  }
}

async function namesMissing(store: Store): Promise<string[]> {
  const known = await knownMigrations()
  const applied = await store.run(appliedMigrations, {}).catch((error: unknown) => {
    if (isIncomplete(error)) return [] // not even the ledger of migrations is there
    throw error
  })
  return known.filter(({ number }) => !applied.some((row) => row.number === number)).map(({ name }) => name)
}

function isIncomplete(error: unknown): boolean {
  return error instanceof HoldfastError && (error.code === 'schema_older' || error.code === 'schema_missing')
}
