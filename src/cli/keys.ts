import type { Command } from 'commander'
import type { Holdfast } from '../engine/engine.ts'
import { type ApiKey, type Scope, scopes } from '../engine/keys.ts'
import { HoldfastError } from '../errors/errors.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { table } from './table.ts'
import { complain, paint, print } from './terminal.ts'
import { ageWords, parseLength } from './time-words.ts'
import { whoAmI } from './who-am-i.ts'

interface Flags {
  name?: string
  scopes?: string
  tenant?: string
  allTenants?: true
  expires?: string
  json?: true
}

/** Adds `holdfast keys …`. */
export function addKeys(program: Command): void {
  const keys = program
    .command('keys')
    .description('API keys: who may come in over HTTP, for whose jobs, and to do what.')
  addCreate(keys)
  addList(keys)
  addRevoke(keys)
}

function addCreate(keys: Command): void {
  const words = Object.entries(scopes).map(([scope, about]) => `  ${scope.padEnd(8)} ${about}`)
  const command = keys
    .command('create')
    .description('Create a key. Its text is shown this once; only a hash of it is kept.')
    .requiredOption('--name <text>', 'For people: whose it is.')
    .requiredOption('--scopes <scopes>', `What it may do, with commas between: ${Object.keys(scopes).join(', ')}.`)
    .option('--tenant <tenant>', 'Whose jobs it sees.')
    .option('--all-tenants', 'It sees the jobs of all tenants.')
    .option('--expires <time>', 'After how long it is useless by itself: 12h, 90d. Never if not given.')
    .action((flags: Flags) => create(flags))
  addSettings(addJson(command), clientSettings)
  command.addHelpText('after', `\nScopes:\n${words.join('\n')}`)
  addExamples(command, [
    ['holdfast keys create --name web --scopes submit,read --tenant acme', 'a service that submits for acme'],
    ['holdfast keys create --name gpu --scopes work --all-tenants', 'remote workers'],
    ['holdfast keys create --name me --scopes admin --all-tenants --expires 30d', 'for a while, all of it'],
  ])
}

function addList(keys: Command): void {
  const command = keys
    .command('list')
    .description('List all keys, without their texts.')
    .action((flags: Flags) => list(flags))
  addSettings(addJson(command), clientSettings)
}

function addRevoke(keys: Command): void {
  const command = keys
    .command('revoke')
    .description('Make a key useless. Every server refuses it within two seconds.')
    .argument('<id>', 'The id of a key, or its last 8 letters.')
    .action((id: string, flags: Flags) => revoke(id, flags))
  addSettings(addJson(command), clientSettings)
}

async function create(flags: Flags): Promise<void> {
  if ((flags.tenant === undefined) === (flags.allTenants === undefined))
    throw new HoldfastError('option_invalid', 'Say whose jobs the key sees: --tenant <tenant>, or --all-tenants.')
  const created = await withClient(configOf({ ...flags }), (hf) =>
    hf.keys.create(
      {
        name: flags.name as string,
        scopes: (flags.scopes as string).split(',').map((scope) => scope.trim()) as Scope[],
        tenant: flags.tenant ?? null,
        ...(flags.expires === undefined ? {} : { expiresMs: parseLength('--expires', flags.expires) }),
      },
      { by: whoAmI() },
    ),
  )
  if (flags.json) return print(JSON.stringify(created, null, 2))
  complain(`Created the key ${created.name} (${created.id}). Keep its text; it is shown this once:`)
  print(created.key)
}

async function list(flags: Flags): Promise<void> {
  const all = await withClient(configOf({ ...flags }), (hf) => allKeys(hf))
  if (flags.json) return print(JSON.stringify(all, null, 2))
  if (all.length === 0) return complain('There are no keys yet. `holdfast keys create --help` says how to make one.')
  const rows = all.map((key) => [
    { text: key.id.slice(-8) },
    { text: key.name },
    { text: key.tenant ?? 'all tenants' },
    { text: key.scopes.join(', ') },
    { text: ageWords(key.createdAt) },
    { text: makerWords(key) },
    { text: key.usedAt ? ageWords(key.usedAt) : 'never' },
    stateCell(key),
  ])
  for (const line of table(['ID', 'NAME', 'TENANT', 'SCOPES', 'CREATED', 'BY', 'USED', 'STATE'], rows)) print(line)
}

const pageSize = 1_000

async function allKeys(hf: Holdfast): Promise<ApiKey[]> {
  const all: ApiKey[] = []
  let page: ApiKey[]
  do {
    const last = all.at(-1)
    page = await hf.keys.list({ limit: pageSize, ...(last && { before: last.id }) })
    all.push(...page)
  } while (page.length === pageSize)
  return all
}

/** Who made a key; a key by the end of its id, as this list names it. */
function makerWords({ createdBy }: ApiKey): string {
  return createdBy?.replace(/^key \S+(?=\S{8}$)/, 'key ') ?? ''
}

function stateCell({ revokedAt, expiresAt }: ApiKey) {
  if (revokedAt) return { text: `revoked ${ageWords(revokedAt)}`, look: 'red' as const }
  if (expiresAt && expiresAt.getTime() < Date.now()) return { text: 'expired', look: 'red' as const }
  return { text: expiresAt ? `good until ${expiresAt.toISOString().slice(0, 16)}Z` : 'good', look: 'green' as const }
}

async function revoke(word: string, flags: Flags): Promise<void> {
  const revoked = await withClient(configOf({ ...flags }), async (hf) => {
    const isEnd = /^[0-9a-f]{6,12}$/i.test(word)
    const found = isEnd ? await hf.keys.list({ ending: word, limit: 2 }) : []
    if (found.length > 1) throw new HoldfastError('option_invalid', `Several keys end with ${word}; give more letters.`)
    return hf.keys.revoke(found[0]?.id ?? word, { by: whoAmI() })
  })
  if (flags.json) return print(JSON.stringify(revoked, null, 2))
  print(`${paint('green', 'Revoked')} the key ${revoked.name} (${revoked.id}).`)
}
