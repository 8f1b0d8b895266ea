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
    .description('Switch an endpoint on again. What was missed is a dead letter, and can be replayed.')
    .argument('<id>', 'The id of an endpoint, or its last 8 letters.')
    .action((word: string, flags: Flags) =>
      change(configOf({ ...flags }), word, flags, {
        done: 'on',
        act: (hf, id) => hf.webhooks.enable(id, { by: whoAmI() }),
        hint: (id) => `What it missed: holdfast webhooks replay --all --endpoint ${id}`,
      }),
    )
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast webhooks enable 099a8057', 'after its receiver was mended']])
}

/** Adds `holdfast webhooks disable <id>`. */
export function addDisable(webhooks: Command): void {
  const command = webhooks
    .command('disable')
    .description('Switch an endpoint off: what waits for it, and what comes, becomes dead letters.')
    .argument('<id>', 'The id of an endpoint, or its last 8 letters.')
    .option('--why <text>', 'Why, for whoever looks at it later.')
    .action((word: string, flags: Flags) =>
      change(configOf({ ...flags }), word, flags, {
        done: 'off',
        act: (hf, id) =>
          hf.webhooks.disable(id, { by: whoAmI(), ...(flags.why === undefined ? {} : { why: flags.why }) }),
      }),
    )
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast webhooks disable 099a8057 --why "moves house"', 'until it is enabled']])
}

/** Adds `holdfast webhooks remove <id>`. */
export function addRemove(webhooks: Command): void {
  const command = webhooks
    .command('remove')
    .description('Remove an endpoint. What was sent to it stays listed until it is old.')
    .argument('<id>', 'The id of an endpoint, or its last 8 letters.')
    .action((word: string, flags: Flags) =>
      change(configOf({ ...flags }), word, flags, {
        done: 'removed',
        act: (hf, id) => hf.webhooks.remove(id, { by: whoAmI() }),
      }),
    )
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast webhooks remove 01890a5d-ac96-774b-bcce-b302099a8057', 'for good']])
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
