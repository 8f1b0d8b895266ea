import type { Command } from 'commander'
import { withClient } from './client.ts'
import { addExamples, addJsonLines, addSettings, clientSettings, configOf } from './flags.ts'
import { currentPosition, follow } from './follow.ts'
import { addWhich, onWatchError, showEvents, type WhichFlags, whichOf } from './show-events.ts'
import { listenForEnd } from './signals.ts'
import { complain } from './terminal.ts'

/** Adds `holdfast events listen`. */
export function addListen(events: Command): void {
  const command = events
    .command('listen')
    .description('Stream events as they happen, until Ctrl-C.')
    .action((flags: WhichFlags) => listen(flags))
  addSettings(addJsonLines(addWhich(command)), clientSettings)
  addExamples(command, [
    ['holdfast events listen', 'all events'],
    ['holdfast events listen --types job.failed,job.quarantined', 'only failures'],
    ['holdfast events listen --tenant acme --json', 'one tenant, as JSON lines'],
  ])
}

async function listen(flags: WhichFlags): Promise<void> {
  const config = configOf({ ...flags })
  const { signal } = listenForEnd({ hurriedBy: ['SIGINT'], onHurry: () => process.exit(1) })
  await withClient(config, async (hf) => {
    const which = await whichOf(hf, flags)
    const from = await currentPosition(hf)
    complain('Listening. Press Ctrl-C to stop.')
    await showEvents(hf, flags, follow(hf, { ...which, from, signal, onError: onWatchError }))
  })
}
