import type { Command } from 'commander'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import { nearest } from '../errors/nearest.ts'
import { allDeliveryStates, type DeliveryState, isDeliveryState } from '../job/delivery-state.ts'
import type { Delivery } from '../webhooks/deliveries.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { parseWhole } from './format-time.ts'
import { deliveryTable } from './format-webhook.ts'
import { pickJob } from './pick-job.ts'
import { pickEndpoint } from './pick-webhook.ts'
import { paint, print } from './terminal.ts'

interface Flags {
  endpoint?: string
  job?: string
  state?: string
  tenant?: string
  number: string
  before?: string
  json?: true
}

/** Adds `holdfast webhooks deliveries`. */
export function addDeliveries(webhooks: Command): void {
  const command = webhooks
    .command('deliveries')
    .description('List webhook deliveries, newest first.')
    .option('--endpoint <id>', 'Only this endpoint.')
    .option('--job <id>', 'Only this job.')
    .option('--state <state>', `Only this state: ${allDeliveryStates.join(', ')}.`)
    .option('--tenant <tenant>', 'Only this tenant.')
    .option('-n, --number <number>', 'Number of deliveries, up to 1000.', '20')
    .option('--before <id>', 'Only deliveries created before this one, for the next page.')
    .action((flags: Flags) => listDeliveries(flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast webhooks deliveries', 'the latest 20'],
    ['holdfast webhooks deliveries --state dead', 'failed deliveries'],
    ['holdfast webhooks deliveries --job 099a8057 --json', 'for one job, as JSON'],
  ])
}

async function listDeliveries(flags: Flags): Promise<void> {
  const config = configOf({ ...flags })
  const limit = parseWhole('--number', flags.number)
  const state = flags.state === undefined ? undefined : stateIn(flags.state)
  const deliveries = await withClient(config, (hf) => find(hf, flags, { limit, state }))
  const next = deliveries.length === limit ? (deliveries.at(-1)?.id ?? null) : null
  if (flags.json) return print(JSON.stringify({ deliveries, next }, null, 2))
  if (deliveries.length === 0) return print('No deliveries match.')
  for (const line of deliveryTable(deliveries)) print(line)
  if (next) print(paint('dim', `More: holdfast webhooks deliveries --before ${next}`))
}

async function find(
  hf: Holdfast,
  { endpoint, job, tenant, before }: Flags,
  { limit, state }: { limit: number; state: DeliveryState | undefined },
): Promise<Delivery[]> {
  const picked = endpoint === undefined ? undefined : await pickEndpoint(hf, endpoint)
  const found = await hf.webhooks.deliveries({
    limit,
    ...(state !== undefined && { state }),
    ...(picked !== undefined && { endpoint: picked }),
    ...(job !== undefined && { job: await pickJob(hf, job) }),
    ...(tenant !== undefined && { tenant }),
    ...(before !== undefined && { before }),
  })
  // deliveries of a removed endpoint are listed; only if there are none, report an unknown endpoint
  if (found.length === 0 && picked !== undefined) await hf.webhooks.get(picked)
  return found
}

function stateIn(word: string): DeliveryState {
  if (isDeliveryState(word)) return word
  const near = nearest(word, allDeliveryStates)
  throw new HoldfastError(
    'option_invalid',
    `${JSON.stringify(word)} is not a delivery state${near ? `; did you mean ${near}?` : '.'} The states are ${allDeliveryStates.join(', ')}.`,
  )
}
