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
    .description('Forget a group: its place in the log and what it has parked. The log is kept for it no more.')
    .argument('<group>', 'The name of the group.')
    .option('--yes', 'That is meant.')
    .action((group: string, flags: Flags) => forget(group, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast events forget orders --yes', 'for good']])
}

async function forget(group: string, flags: Flags): Promise<void> {
  const config = configOf({ ...flags })
  if (!flags.yes)
    throw new HoldfastError(
      'option_invalid',
      `Forgetting ${group} drops its place in the log and all that it has parked, for good. If that is meant, say --yes.`,
    )
  await withClient(config, (hf) => hf.events.forget(group, { by: whoAmI() }))
  if (flags.json) return print(JSON.stringify({ forgotten: group }))
  print(`The group ${group} is forgotten.`)
}
