import type { Command } from 'commander'
import { withClient } from './client.ts'
import { addExamples, addJsonLines, addSettings, clientSettings, configOf } from './flags.ts'
import { follow, placeOfNow } from './follow.ts'
import { addWhich, onWatchTrouble, showEvents, type WhichFlags, whichOf } from './show-events.ts'
import { listenForEnd } from './signals.ts'
import { complain } from './terminal.ts'

/** Adds `holdfast events listen`. */
export function addListen(events: Command): void {
  const command = events
    .command('listen')
    .description('Show events as they come, until Ctrl-C.')
    .action((flags: WhichFlags) => listen(flags))
  addSettings(addJsonLines(addWhich(command)), clientSettings)
  addExamples(command, [
    ['holdfast events listen', 'everything that happens'],
    ['holdfast events listen --types job.failed,job.quarantined', 'what needs a look'],
    ['holdfast events listen --tenant acme --json', 'for a program'],
  ])
}

async function listen(flags: WhichFlags): Promise<void> {
  const config = configOf({ ...flags })
  const { signal } = listenForEnd({ hurriedBy: ['SIGINT'], onHurry: () => process.exit(1) })
  await withClient(config, async (hf) => {
    const which = await whichOf(hf, flags)
    const from = await placeOfNow(hf)
    complain('Listening. Ctrl-C stops it.')
    await showEvents(hf, flags, follow(hf, { ...which, from, signal, onTrouble: onWatchTrouble }))
  })
}
