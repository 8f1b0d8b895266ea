import type { Command } from 'commander'
import type { Replay } from '../engine/events.ts'
import { HoldfastError } from '../errors/errors.ts'
import { withClient } from './client.ts'
import { countWords } from './event-words.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { print } from './terminal.ts'
import { parseMoment, parseWhole } from './time-words.ts'
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
    .description(
      'Have a group handle events once more: those that it parked, or everything from a place in the log on.',
    )
    .argument('<group>', 'The name of the group.')
    .option('--parked [seq]', 'The parked event with this number, or all of them.')
    .option('--from <place>', 'Everything from here on: beginning, now, a moment, or the number of an event.')
    .action((group: string, flags: Flags) => replay(group, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast events replay orders --parked', 'all that is parked'],
    ['holdfast events replay orders --parked 1204', 'one parked event'],
    ['holdfast events replay orders --from 2030-01-31T08:00:00Z', 'everything since then'],
    ['holdfast events replay orders --from now', 'pass over what is unread'],
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
    return print(`${group} reads from ${placeWords(flags.from ?? '')} on, in ${countWords(count, 'partition')}.`)
  print(
    count === 0 ? `Nothing is parked by ${group}.` : `${group} handles ${countWords(count, 'parked event')} once more.`,
  )
}

function whatOf({ parked, from }: Flags): Replay {
  if ((parked === undefined) === (from === undefined))
    throw new HoldfastError('option_invalid', 'Say what to replay: either --parked [seq], or --from <place>.')
  if (from !== undefined) return { from: placeOf(from) }
  return { parked: parked === true || parked === 'all' ? 'all' : parseWhole('--parked', parked ?? '') }
}

function placeOf(word: string): 'beginning' | 'now' | Date | number {
  if (word === 'beginning' || word === 'now') return word
  // a group stands behind the last event that it has handled, so it goes back to the one before
  if (/^\d+$/.test(word)) return Math.max(0, parseWhole('--from', word) - 1)
  if (/^\d{4}-/.test(word)) return parseMoment('--from', word)
  throw new HoldfastError(
    'option_invalid',
    `--from takes beginning, now, a moment such as 2030-01-31T08:00:00Z, or the number of an event, not ${JSON.stringify(word)}.`,
  )
}

function placeWords(word: string): string {
  if (word === 'beginning') return 'the beginning'
  return /^\d+$/.test(word) ? `event ${word}` : word
}
