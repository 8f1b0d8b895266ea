import type { Command } from 'commander'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { parseSince } from './format-time.ts'
import { pickDelivery, pickEndpoint } from './pick-webhook.ts'
import { paint, print } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

interface Flags {
  all?: true
  delivered?: true
  endpoint?: string
  tenant?: string
  since?: string
  json?: true
}

/** Adds `holdfast webhooks replay [id]`. */
export function addReplay(webhooks: Command): void {
  const command = webhooks
    .command('replay')
    .description('Resend a delivery under the same id, or all dead letters.')
    .argument('[id]', 'Id of a finished delivery, or its last 8 characters.')
    .option('--all', 'All dead letters.')
    .option('--delivered', 'With --all: resend delivered ones instead of dead letters.')
    .option('--endpoint <id>', 'With --all: only this endpoint.')
    .option('--tenant <tenant>', 'With --all: only this tenant.')
    .option('--since <time>', 'With --all: only deliveries created since a timestamp, or in the last 30m, 12h, 2d.')
    .action((id: string | undefined, flags: Flags) => replay(id, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast webhooks replay 099a8057', 'one delivery'],
    ['holdfast webhooks replay --all --endpoint 099a9112 --since 12h', 'the dead letters of an outage'],
  ])
}

async function replay(word: string | undefined, flags: Flags): Promise<void> {
  const config = configOf({ ...flags })
  const { all, delivered, endpoint, tenant, since } = flags
  if ((word === undefined) === (all === undefined))
    throw new HoldfastError('option_invalid', 'Choose what to resend: a delivery id or --all.')
  if (!all && (delivered ?? endpoint ?? tenant ?? since) !== undefined)
    throw new HoldfastError('option_invalid', '--delivered, --endpoint, --tenant and --since require --all.')
  const from = since === undefined ? undefined : parseSince('--since', since)
  await withClient(config, (hf) => (word === undefined ? replayAll(hf, flags, from) : replayOne(hf, word, flags)))
}

async function replayOne(hf: Holdfast, word: string, { json }: Flags): Promise<void> {
  const id = await pickDelivery(hf, word)
  await hf.webhooks.replay(id, { by: whoAmI() })
  if (json) return print(JSON.stringify({ replayed: 1, ids: [id] }))
  print(`${id}  ${paint('green', 'will be resent')}`)
}

async function replayAll(hf: Holdfast, flags: Flags, since: Date | undefined): Promise<void> {
  const { endpoint, tenant, delivered, json } = flags
  const picked = endpoint === undefined ? undefined : await pickEndpoint(hf, endpoint)
  const count = await hf.webhooks.replayAll({
    by: whoAmI(),
    state: delivered ? 'delivered' : 'dead',
    ...(picked !== undefined && { endpoint: picked }),
    ...(tenant !== undefined && { tenant }),
    ...(since !== undefined && { since }),
  })
  if (count === 0 && picked !== undefined) await hf.webhooks.get(picked) // throws if there is none
  if (json) return print(JSON.stringify({ replayed: count }))
  if (count === 0) return print(delivered ? 'No delivered webhooks match.' : 'No dead letters match.')
  print(`Resending ${count === 1 ? '1 delivery' : `${count} deliveries`}.`)
}
