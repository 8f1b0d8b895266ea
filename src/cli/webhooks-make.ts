import type { Command } from 'commander'
import type { Endpoint, NewEndpoint } from '../engine/webhooks.ts'
import { HoldfastError } from '../errors/errors.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, addTypes, configOf, typesIn, webhookSettings } from './flags.ts'
import { pickEndpoint } from './pick-webhook.ts'
import { complain, print } from './terminal.ts'
import { parseLength } from './time-words.ts'
import { endpointLines } from './webhook-words.ts'
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
    .description('Create an endpoint. It is told what happens from here on. Its secret is shown this once.')
    .argument('<url>', 'Where to: https, or any host of --webhook-allow.')
    .option('--tenant <tenant>', 'Whose events it gets.', 'default')
    .option('--secret <whsec>', 'The signing secret, as whsec_… Without it, one is made.')
    .option('--note <text>', 'For people.')
    .action((url: string, flags: Flags) => add(url, flags))
  addTypes(addHeader(command), 'Which events, those that end a job if not given:')
  addSettings(addJson(command), [...webhookSettings, 'webhookEndpoints'])
  addExamples(command, [
    ['holdfast webhooks add https://example.com/hooks', 'the end of each job'],
    [
      'holdfast webhooks add https://example.com/hooks --types "job.*" --tenant acme',
      'all that happens to jobs of acme',
    ],
    ['holdfast webhooks add https://example.com/hooks --header x-api-key:123', 'with a header of yours'],
  ])
}

/** Adds `holdfast webhooks update <id>`. */
export function addUpdate(webhooks: Command): void {
  const command = webhooks
    .command('update')
    .description('Change an endpoint. What is not given stays as it is.')
    .argument('<id>', 'The id of an endpoint, or its last 8 letters.')
    .option('--to <url>', 'Where to.')
    .option('--note <text>', 'For people.')
    .option('--no-headers', 'No headers of its own any more.')
    .action((id: string, flags: Flags) => update(id, flags))
  addTypes(addHeader(command), 'Which events:')
  addSettings(addJson(command), webhookSettings)
  addExamples(command, [
    ['holdfast webhooks update 099a8057 --to https://example.com/new', 'another address'],
    ['holdfast webhooks update 099a8057 --types job.failed', 'other events'],
  ])
}

/** Adds `holdfast webhooks rotate <id>`. */
export function addRotate(webhooks: Command): void {
  const command = webhooks
    .command('rotate')
    .description('Give an endpoint another secret, which is shown this once. For a while, both sign what is sent.')
    .argument('<id>', 'The id of an endpoint, or its last 8 letters.')
    .option('--grace <time>', 'How long both sign: 30m, 12h, 2d. A day if not given.')
    .option('--secret <whsec>', 'The signing secret, as whsec_… Without it, one is made.')
    .action((id: string, flags: Flags) => rotate(id, flags))
  addSettings(addJson(command), webhookSettings)
  addExamples(command, [
    ['holdfast webhooks rotate 099a8057', 'both are good for a day'],
    ['holdfast webhooks rotate 099a8057 --grace 0', 'the old one is bad at once'],
  ])
}

function addHeader(command: Command): Command {
  const collect = (word: string, all: string[] = []) => [...all, word]
  return command.option('--header <name:value>', 'Sent with every delivery; may be given several times.', collect)
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
    throw new HoldfastError('option_invalid', 'Say what to change: --to, --types, --header, --no-headers or --note.')
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

/** What both a new endpoint and a change can say. */
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
    // it may be a credential, so it is not repeated
    throw new HoldfastError(
      'option_invalid',
      '--header takes a name and a value with a colon between, as x-api-key:123.',
    )
  })
  return Object.fromEntries(pairs)
}

function tell({ json }: Flags, endpoint: Endpoint & { secret?: string }): void {
  for (const line of json ? [JSON.stringify({ endpoint }, null, 2)] : endpointLines(endpoint)) print(line)
  if (!json && endpoint.secret !== undefined)
    complain('The secret is shown this once and never again: the receiver needs it to verify what it gets.')
}
