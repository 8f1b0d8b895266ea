import type { Command } from 'commander'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { pickDelivery, pickEndpoint } from './pick-webhook.ts'
import { paint, print } from './terminal.ts'
import { parseSince } from './time-words.ts'
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
    .description('Send a delivery once more, under its own id, or all dead letters at once.')
    .argument('[id]', 'The id of a delivery that has ended, or its last 8 letters.')
    .option('--all', 'All dead letters.')
    .option('--delivered', 'With --all: what was delivered, instead of dead letters.')
    .option('--endpoint <id>', 'With --all: only those to this endpoint.')
    .option('--tenant <tenant>', 'With --all: only those of this tenant.')
    .option('--since <time>', 'With --all: only those made since a moment, or in the last 30m, 12h, 2d.')
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
    throw new HoldfastError('option_invalid', 'Say what to send once more: the id of a delivery, or --all.')
  if (!all && (delivered ?? endpoint ?? tenant ?? since) !== undefined)
    throw new HoldfastError('option_invalid', '--delivered, --endpoint, --tenant and --since go with --all only.')
  const from = since === undefined ? undefined : parseSince('--since', since)
  await withClient(config, (hf) => (word === undefined ? replayAll(hf, flags, from) : replayOne(hf, word, flags)))
}

async function replayOne(hf: Holdfast, word: string, { json }: Flags): Promise<void> {
  const id = await pickDelivery(hf, word)
  await hf.webhooks.replay(id, { by: whoAmI() })
  if (json) return print(JSON.stringify({ replayed: 1, ids: [id] }))
  print(`${id}  ${paint('green', 'is sent once more')}`)
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
  if (count === 0 && picked !== undefined) await hf.webhooks.get(picked) // says so if there is none
  if (json) return print(JSON.stringify({ replayed: count }))
  if (count === 0) return print(delivered ? 'Nothing that was delivered matches.' : 'No dead letters match.')
  print(`${count === 1 ? '1 delivery is' : `${count} deliveries are`} sent once more.`)
}
