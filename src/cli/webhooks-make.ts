import type { Command } from 'commander'
import { HoldfastError } from '../errors/errors.ts'
import type { Endpoint, NewEndpoint } from '../webhooks/endpoints.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, addTypes, configOf, typesIn, webhookSettings } from './flags.ts'
import { parseLength } from './format-time.ts'
import { endpointLines } from './format-webhook.ts'
import { pickEndpoint } from './pick-webhook.ts'
import { complain, print } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

interface Flags {
  tenant?: string
  types?: string
  secret?: string
  header?: string[]
  headers?: boolean
  note?: string
  to?: string
  grace?: string
  json?: true
}

/** Adds `holdfast webhooks add <url>`. */
export function addAdd(webhooks: Command): void {
  const command = webhooks
    .command('add')
    .description('Create an endpoint. It receives events from now on. Its secret is shown only once.')
    .argument('<url>', 'Endpoint URL: https, or any host in --webhook-allow.')
    .option('--tenant <tenant>', 'Tenant whose events it receives.', 'default')
    .option('--secret <whsec>', 'Signing secret (whsec_…). Default: generated.')
    .option('--note <text>', 'Note to display with the endpoint.')
    .action((url: string, flags: Flags) => add(url, flags))
  addTypes(addHeader(command), 'Event types to send (default: those that end a job):')
  addSettings(addJson(command), [...webhookSettings, 'webhookEndpoints'])
  addExamples(command, [
    ['holdfast webhooks add https://example.com/hooks', 'when a job ends'],
    [
      'holdfast webhooks add https://example.com/hooks --types "job.*" --tenant acme',
      'all job events of the tenant acme',
    ],
    ['holdfast webhooks add https://example.com/hooks --header x-api-key:123', 'with a custom header'],
  ])
}

/** Adds `holdfast webhooks update <id>`. */
export function addUpdate(webhooks: Command): void {
  const command = webhooks
    .command('update')
    .description('Change an endpoint. Options you omit stay unchanged.')
    .argument('<id>', 'Endpoint id, or its last 8 characters.')
    .option('--to <url>', 'New URL.')
    .option('--note <text>', 'Note to display with the endpoint.')
    .option('--no-headers', 'Remove all custom headers.')
    .action((id: string, flags: Flags) => update(id, flags))
  addTypes(addHeader(command), 'Event types to send:')
  addSettings(addJson(command), webhookSettings)
  addExamples(command, [
    ['holdfast webhooks update 099a8057 --to https://example.com/new', 'a new URL'],
    ['holdfast webhooks update 099a8057 --types job.failed', 'other event types'],
  ])
}

/** Adds `holdfast webhooks rotate <id>`. */
export function addRotate(webhooks: Command): void {
  const command = webhooks
    .command('rotate')
    .description(
      'Rotate the signing secret. The new secret is shown only once. Both secrets sign deliveries during the grace period.',
    )
    .argument('<id>', 'Endpoint id, or its last 8 characters.')
    .option('--grace <time>', 'Grace period: 30m, 12h, 2d. Default: one day.')
    .option('--secret <whsec>', 'Signing secret (whsec_…). Default: generated.')
    .action((id: string, flags: Flags) => rotate(id, flags))
  addSettings(addJson(command), webhookSettings)
  addExamples(command, [
    ['holdfast webhooks rotate 099a8057', 'both secrets are valid for a day'],
    ['holdfast webhooks rotate 099a8057 --grace 0', 'the old secret stops working immediately'],
  ])
}

function addHeader(command: Command): Command {
  const collect = (word: string, all: string[] = []) => [...all, word]
  return command.option('--header <name:value>', 'Header to send with every delivery; repeatable.', collect)
}

async function add(url: string, flags: Flags): Promise<void> {
  const { tenant, secret, note } = flags
  const wanted: NewEndpoint = {
    url,
    ...changeOf(flags),
    ...(tenant !== undefined && { tenant }),
    ...(secret !== undefined && { secret }),
    ...(note !== undefined && { note }),
  }
  tell(flags, await withClient(configOf({ ...flags }), (hf) => hf.webhooks.create(wanted, { by: whoAmI() })))
}

async function update(word: string, flags: Flags): Promise<void> {
  const { to, note, headers } = flags
  const change = {
    ...(to !== undefined && { url: to }),
    ...(headers === false && { headers: {} }),
    ...changeOf(flags),
    ...(note !== undefined && { note }),
  }
  if (Object.keys(change).length === 0)
    throw new HoldfastError(
      'option_invalid',
      'Nothing to change: pass --to, --types, --header, --no-headers or --note.',
    )
  const endpoint = await withClient(configOf({ ...flags }), async (hf) =>
    hf.webhooks.update(await pickEndpoint(hf, word), change, { by: whoAmI() }),
  )
  tell(flags, endpoint)
}

async function rotate(word: string, flags: Flags): Promise<void> {
  const { secret, grace } = flags
  const how = {
    by: whoAmI(),
    ...(secret !== undefined && { secret }),
    ...(grace !== undefined && { graceMs: parseLength('--grace', grace) }),
  }
  const endpoint = await withClient(configOf({ ...flags }), async (hf) =>
    hf.webhooks.rotate(await pickEndpoint(hf, word), how),
  )
  tell(flags, endpoint)
}

/** The fields that both a new endpoint and a change can set. */
function changeOf({ types, header }: Flags): Pick<NewEndpoint, 'types' | 'headers'> {
  return {
    ...typesIn({ ...(types !== undefined && { types }) }),
    ...(header !== undefined && { headers: headersIn(header) }),
  }
}

function headersIn(words: readonly string[]): Record<string, string> {
  const pairs = words.map((word) => {
    const [, name, value] = /^([^:]+):(.*)$/s.exec(word) ?? []
    if (name !== undefined && value !== undefined) return [name.trim(), value.trim()] as const
    // not repeated, because it may be a credential
    throw new HoldfastError('option_invalid', '--header takes name:value, such as x-api-key:123.')
  })
  return Object.fromEntries(pairs)
}

function tell({ json }: Flags, endpoint: Endpoint & { secret?: string }): void {
  for (const line of json ? [JSON.stringify({ endpoint }, null, 2)] : endpointLines(endpoint)) print(line)
  if (!json && endpoint.secret !== undefined)
    complain('Save the secret now; it is shown only once. The receiver needs it to verify signatures.')
}
