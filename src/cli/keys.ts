import type { Command } from 'commander'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import { type ApiKey, type Scope, scopes } from '../keys/keys.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { formatAge, parseLength } from './format-time.ts'
import { table } from './table.ts'
import { complain, paint, print } from './terminal.ts'
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
  const keys = program.command('keys').description('Manage API keys for the HTTP API: their tenants and scopes.')
  addCreate(keys)
  addList(keys)
  addRevoke(keys)
}

function addCreate(keys: Command): void {
  const words = Object.entries(scopes).map(([scope, about]) => `  ${scope.padEnd(8)} ${about}`)
  const command = keys
    .command('create')
    .description('Create a key. The key is shown only once; Holdfast stores a hash of it.')
    .requiredOption('--name <text>', 'Display name, such as its owner.')
    .requiredOption('--scopes <scopes>', `What the key may do, comma-separated: ${Object.keys(scopes).join(', ')}.`)
    .option('--tenant <tenant>', 'Limit the key to this tenant.')
    .option('--all-tenants', 'Give access to all tenants.')
    .option('--expires <time>', 'Expire after this time: 12h, 90d. Default: never.')
    .action((flags: Flags) => create(flags))
  addSettings(addJson(command), clientSettings)
  command.addHelpText('after', `\nScopes:\n${words.join('\n')}`)
  addExamples(command, [
    ['holdfast keys create --name web --scopes submit,read --tenant acme', 'a service that submits for acme'],
    ['holdfast keys create --name gpu --scopes work --all-tenants', 'remote workers'],
    ['holdfast keys create --name me --scopes admin --all-tenants --expires 30d', 'full access for 30 days'],
  ])
}

function addList(keys: Command): void {
  const command = keys
    .command('list')
    .description('List all keys. Shows no secrets.')
    .action((flags: Flags) => list(flags))
  addSettings(addJson(command), clientSettings)
}

function addRevoke(keys: Command): void {
  const command = keys
    .command('revoke')
    .description('Revoke a key. Every server rejects it within two seconds.')
    .argument('<id>', 'Key id, or its last 8 characters.')
    .action((id: string, flags: Flags) => revoke(id, flags))
  addSettings(addJson(command), clientSettings)
}

async function create(flags: Flags): Promise<void> {
  if ((flags.tenant === undefined) === (flags.allTenants === undefined))
    throw new HoldfastError(
      'option_invalid',
      'Choose which jobs the key can access: --tenant <tenant> or --all-tenants.',
    )
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
  complain(`Created the key ${created.name} (${created.id}). Save it now; it is shown only once:`)
  print(created.key)
}

async function list(flags: Flags): Promise<void> {
  const all = await withClient(configOf({ ...flags }), (hf) => allKeys(hf))
  if (flags.json) return print(JSON.stringify(all, null, 2))
  if (all.length === 0) return complain('No keys yet. See `holdfast keys create --help`.')
  const rows = all.map((key) => [
    { text: key.id.slice(-8) },
    { text: key.name },
    { text: key.tenant ?? 'all tenants' },
    { text: key.scopes.join(', ') },
    { text: formatAge(key.createdAt) },
    { text: formatMaker(key) },
    { text: key.usedAt ? formatAge(key.usedAt) : 'never' },
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

/** Who created a key. A key is named by the end of its id, as in this list. */
function formatMaker({ createdBy }: ApiKey): string {
  return createdBy?.replace(/^key \S+(?=\S{8}$)/, 'key ') ?? ''
}

function stateCell({ revokedAt, expiresAt }: ApiKey) {
  if (revokedAt) return { text: `revoked ${formatAge(revokedAt)}`, look: 'red' as const }
  if (expiresAt && expiresAt.getTime() < Date.now()) return { text: 'expired', look: 'red' as const }
  return { text: expiresAt ? `valid until ${expiresAt.toISOString().slice(0, 16)}Z` : 'valid', look: 'green' as const }
}

async function revoke(word: string, flags: Flags): Promise<void> {
  const revoked = await withClient(configOf({ ...flags }), async (hf) => {
    const isEnd = /^[0-9a-f]{6,12}$/i.test(word)
    const found = isEnd ? await hf.keys.list({ ending: word, limit: 2 }) : []
    if (found.length > 1)
      throw new HoldfastError('option_invalid', `Several key ids end with ${word}; give more characters.`)
    return hf.keys.revoke(found[0]?.id ?? word, { by: whoAmI() })
  })
  if (flags.json) return print(JSON.stringify(revoked, null, 2))
  print(`${paint('green', 'Revoked')} the key ${revoked.name} (${revoked.id}).`)
}
