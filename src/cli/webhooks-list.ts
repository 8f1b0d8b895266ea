import type { Command } from 'commander'
import type { Endpoint } from '../webhooks/endpoints.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { formatType } from './format-event.ts'
import { parseWhole } from './format-time.ts'
import { deliveryTable, endpointLines, endpointState } from './format-webhook.ts'
import { pickEndpoint } from './pick-webhook.ts'
import { type Cell, table } from './table.ts'
import { paint, print } from './terminal.ts'

interface Flags {
  tenant?: string
  number: string
  before?: string
  json?: true
}

/** Adds `holdfast webhooks list`. */
export function addList(webhooks: Command): void {
  const command = webhooks
    .command('list')
    .description('List endpoints, newest first.')
    .option('--tenant <tenant>', 'Only this tenant.')
    .option('-n, --number <number>', 'Number of endpoints, up to 1000.', '20')
    .option('--before <id>', 'Only endpoints created before this one, for the next page.')
    .action((flags: Flags) => list(flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast webhooks list', 'the latest 20'],
    ['holdfast webhooks list --tenant acme --json', 'for one tenant, as JSON'],
  ])
}

/** Adds `holdfast webhooks show <id>`. */
export function addShow(webhooks: Command): void {
  const command = webhooks
    .command('show')
    .description('Show an endpoint and its latest deliveries, without its secret.')
    .argument('<id>', 'Endpoint id, or its last 8 characters.')
    .action((id: string, flags: { json?: true }) => show(id, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast webhooks show 099a8057', 'by the last 8 characters']])
}

async function list(flags: Flags): Promise<void> {
  const { tenant, before } = flags
  const limit = parseWhole('--number', flags.number)
  const page = { limit, ...(tenant !== undefined && { tenant }), ...(before !== undefined && { before }) }
  const endpoints = await withClient(configOf({ ...flags }), (hf) => hf.webhooks.list(page))
  const next = endpoints.length === limit ? (endpoints.at(-1)?.id ?? null) : null
  if (flags.json) return print(JSON.stringify({ endpoints, next }, null, 2))
  if (endpoints.length === 0) return print('No endpoints match. Create one with `holdfast webhooks add <url>`.')
  for (const line of table(heads, endpoints.map(rowOf))) print(line)
  if (next) print(paint('dim', `More: holdfast webhooks list --before ${next}`))
}

const heads = ['ID', 'TENANT', 'URL', 'TYPES', 'STATE', 'NOTE']

function rowOf(endpoint: Endpoint): Cell[] {
  return [
    { text: endpoint.id },
    { text: endpoint.tenant },
    { text: endpoint.url },
    { text: formatType(endpoint.types) },
    endpointState(endpoint),
    { text: endpoint.note ?? '', look: 'dim' },
  ]
}

const mostDeliveries = 10

async function show(word: string, flags: { json?: true }): Promise<void> {
  const { endpoint, deliveries } = await withClient(configOf({ ...flags }), async (hf) => {
    const found = await hf.webhooks.get(await pickEndpoint(hf, word))
    return {
      endpoint: found,
      deliveries: await hf.webhooks.deliveries({ endpoint: found.id, limit: mostDeliveries }),
    }
  })
  if (flags.json) return print(JSON.stringify({ endpoint, deliveries }, null, 2))
  for (const line of endpointLines(endpoint)) print(line)
  if (deliveries.length === 0) return print('\nNo deliveries yet.')
  for (const line of ['', paint('bold', 'deliveries'), ...deliveryTable(deliveries)]) print(line)
}
