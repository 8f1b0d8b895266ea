import type { Command } from 'commander'
import { HoldfastError } from '../errors/errors.ts'
import type { Replay } from '../events/replay.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { formatCount } from './format-event.ts'
import { parseMoment, parseWhole } from './format-time.ts'
import { print } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

interface Flags {
  parked?: string | true
  from?: string
  json?: true
}

/** Adds `holdfast events replay <group>`. */
export function addReplay(events: Command): void {
  const command = events
    .command('replay')
    .description('Replay events to a group: its parked events, or everything from a position in the log.')
    .argument('<group>', 'Group name.')
    .option('--parked [seq]', 'Replay the parked event with this number, or all parked events.')
    .option('--from <place>', 'Replay everything from here: beginning, now, a timestamp, or an event number.')
    .action((group: string, flags: Flags) => replay(group, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast events replay orders --parked', 'all parked events'],
    ['holdfast events replay orders --parked 1204', 'one parked event'],
    ['holdfast events replay orders --from 2030-01-31T08:00:00Z', 'everything since then'],
    ['holdfast events replay orders --from now', 'skip everything unread'],
  ])
}

async function replay(group: string, flags: Flags): Promise<void> {
  const what = whatOf(flags)
  const count = await withClient(configOf({ ...flags }), (hf) => hf.events.replay(group, what, { by: whoAmI() }))
  if ('parked' in what && what.parked !== 'all' && count === 0)
    throw new HoldfastError(
      'option_invalid',
      `The group ${group} has not parked event ${what.parked}; see \`holdfast events parked ${group}\`.`,
    )
  if (flags.json)
    return print(JSON.stringify({ group, ...('parked' in what ? { events: count } : { partitions: count }) }))
  if (!('parked' in what))
    return print(`${group} will read from ${formatPlace(flags.from ?? '')}, in ${formatCount(count, 'partition')}.`)
  print(count === 0 ? `${group} has no parked events.` : `${group} replays ${formatCount(count, 'parked event')}.`)
}

function whatOf({ parked, from }: Flags): Replay {
  if ((parked === undefined) === (from === undefined))
    throw new HoldfastError('option_invalid', 'Choose what to replay: either --parked [seq] or --from <place>.')
  if (from !== undefined) return { from: positionOf(from) }
  return { parked: parked === true || parked === 'all' ? 'all' : parseWhole('--parked', parked ?? '') }
}

function positionOf(word: string): 'beginning' | 'now' | Date | number {
  if (word === 'beginning' || word === 'now') return word
  // a group's position is its last handled event, so go back to the one before
  if (/^\d+$/.test(word)) return Math.max(0, parseWhole('--from', word) - 1)
  if (/^\d{4}-/.test(word)) return parseMoment('--from', word)
  throw new HoldfastError(
    'option_invalid',
    `--from takes beginning, now, a timestamp such as 2030-01-31T08:00:00Z, or an event number, not ${JSON.stringify(word)}.`,
  )
}

function formatPlace(word: string): string {
  if (word === 'beginning') return 'the beginning'
  return /^\d+$/.test(word) ? `event ${word}` : word
}
