import type { Command } from 'commander'
import { HoldfastError } from '../errors/errors.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { print } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

interface Flags {
  yes?: true
  json?: true
}

/** Adds `holdfast events forget <group>`. */
export function addForget(events: Command): void {
  const command = events
    .command('forget')
    .description(
      'Delete a group with its position in the log and its parked events. The log is no longer retained for it.',
    )
    .argument('<group>', 'Group name.')
    .option('--yes', 'Confirm.')
    .action((group: string, flags: Flags) => forget(group, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast events forget orders --yes', 'cannot be undone']])
}

async function forget(group: string, flags: Flags): Promise<void> {
  const config = configOf({ ...flags })
  if (!flags.yes)
    throw new HoldfastError(
      'option_invalid',
      `This permanently deletes the group ${group}, its position in the log and its parked events. Pass --yes to confirm.`,
    )
  await withClient(config, (hf) => hf.events.forget(group, { by: whoAmI() }))
  if (flags.json) return print(JSON.stringify({ forgotten: group }))
  print(`Deleted the group ${group}.`)
}
