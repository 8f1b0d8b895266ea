import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import type { Holdfast } from '../engine/engine.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { pickEndpoint } from './pick-webhook.ts'
import { paint, print } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

interface Flags {
  why?: string
  json?: true
}

/** Adds `holdfast webhooks enable <id>`. */
export function addEnable(webhooks: Command): void {
  const command = webhooks
    .command('enable')
    .description('Enable an endpoint. Events it missed are dead letters and can be replayed.')
    .argument('<id>', 'Endpoint id, or its last 8 characters.')
    .action((word: string, flags: Flags) =>
      change(configOf({ ...flags }), word, flags, {
        done: 'on',
        act: (hf, id) => hf.webhooks.enable(id, { by: whoAmI() }),
        hint: (id) => `To replay what it missed: holdfast webhooks replay --all --endpoint ${id}`,
      }),
    )
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast webhooks enable 099a8057', 'after its receiver was fixed']])
}

/** Adds `holdfast webhooks disable <id>`. */
export function addDisable(webhooks: Command): void {
  const command = webhooks
    .command('disable')
    .description('Disable an endpoint. Its pending deliveries and new events become dead letters.')
    .argument('<id>', 'Endpoint id, or its last 8 characters.')
    .option('--why <text>', 'Reason, shown with the endpoint.')
    .action((word: string, flags: Flags) =>
      change(configOf({ ...flags }), word, flags, {
        done: 'off',
        act: (hf, id) =>
          hf.webhooks.disable(id, { by: whoAmI(), ...(flags.why === undefined ? {} : { why: flags.why }) }),
      }),
    )
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast webhooks disable 099a8057 --why "receiver is moving"', 'until you enable it again']])
}

/** Adds `holdfast webhooks remove <id>`. */
export function addRemove(webhooks: Command): void {
  const command = webhooks
    .command('remove')
    .description('Remove an endpoint. Its deliveries stay listed until their retention time ends.')
    .argument('<id>', 'Endpoint id, or its last 8 characters.')
    .action((word: string, flags: Flags) =>
      change(configOf({ ...flags }), word, flags, {
        done: 'removed',
        act: (hf, id) => hf.webhooks.remove(id, { by: whoAmI() }),
      }),
    )
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast webhooks remove 01890a5d-ac96-774b-bcce-b302099a8057', 'cannot be undone']])
}

interface Change {
  done: string
  act: (hf: Holdfast, id: string) => Promise<unknown>
  hint?: (id: string) => string
}

async function change(config: Config, word: string, flags: Flags, { done, act, hint }: Change): Promise<void> {
  const { id, answer } = await withClient(config, async (hf) => {
    const picked = await pickEndpoint(hf, word)
    return { id: picked, answer: await act(hf, picked) }
  })
  if (flags.json) return print(JSON.stringify(answer === undefined ? { [done]: id } : { endpoint: answer }, null, 2))
  print(`${id}  ${paint('green', done)}`)
  if (hint) print(paint('dim', hint(id)))
}
