import type { Command } from 'commander'
import { withClient } from './client.ts'
import { addExamples, addJsonLines, addSettings, clientSettings, configOf } from './flags.ts'
import { follow } from './follow.ts'
import { parseWhole } from './format-time.ts'
import { addWhich, onWatchError, showEvents, type WhichFlags, whichOf } from './show-events.ts'
import { listenForEnd } from './signals.ts'
import { print } from './terminal.ts'

interface Flags extends WhichFlags {
  number: string
  follow?: true
}

/** Adds `holdfast events tail`. */
export function addTail(events: Command): void {
  const command = events
    .command('tail')
    .description('Show the latest events, oldest first.')
    .option('-n, --number <number>', 'Number of events.', '20')
    .option('-f, --follow', 'Keep streaming new events, until Ctrl-C.')
    .action((flags: Flags) => tail(flags))
  addSettings(addJsonLines(addWhich(command)), clientSettings)
  addExamples(command, [
    ['holdfast events tail', 'the latest 20'],
    ['holdfast events tail -n 100 --types job.failed', 'the latest 100 failures'],
    ['holdfast events tail --job 099a8057 --follow', 'one job, until Ctrl-C'],
  ])
}

async function tail(flags: Flags): Promise<void> {
  const config = configOf({ ...flags })
  const back = parseWhole('--number', flags.number)
  const { signal } = listenForEnd({ hurriedBy: ['SIGINT'], onHurry: () => process.exit(1) })
  const count = await withClient(config, async (hf) => {
    const which = await whichOf(hf, flags)
    if (flags.follow)
      return showEvents(hf, flags, follow(hf, { ...which, from: { back }, signal, onError: onWatchError }))
    return showEvents(hf, flags, hf.events.watch({ ...which, back, follow: false, signal }))
  })
  if (count === 0 && !flags.json && !signal.aborted) print('No events match.')
}
