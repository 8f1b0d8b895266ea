import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { openStore } from '../postgres/store.ts'
import { migrate, pendingIn } from '../schema/migrate.ts'
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
    .description('Run pending migrations. Safe to run from several processes at once.')
    .option('--check', 'List pending migrations without applying them. Exits with code 1 if there are any.')
    .action((flags: Flags) => (flags.check ? check(flags) : apply(flags)))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast migrate --url postgres://user:password@host/database', 'before deploying a new version'],
    ['holdfast migrate --check', 'as a check in a deployment'],
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
    return await pendingIn(store)
  } finally {
    await store.close()
  }
}
