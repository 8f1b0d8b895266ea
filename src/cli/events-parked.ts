import type { Command } from 'commander'
import type { ParkedEvent } from '../events/group.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { formatAge, parseWhole } from './format-time.ts'
import { shortId } from './pick-job.ts'
import { type Cell, table } from './table.ts'
import { paint, print } from './terminal.ts'

interface Flags {
  number: string
  after?: string
  json?: true
}

/** Adds `holdfast events parked <group>`. */
export function addParked(events: Command): void {
  const command = events
    .command('parked')
    .description('List the events that a group failed to handle and parked, with their errors.')
    .argument('<group>', 'Group name.')
    .option('-n, --number <number>', 'Number of events, up to 1000.', '20')
    .option('--after <seq>', 'Only events after this one, for the next page.')
    .action((group: string, flags: Flags) => listParked(group, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast events parked orders', 'the oldest 20'],
    ['holdfast events parked orders --json', 'as JSON'],
  ])
}

async function listParked(group: string, flags: Flags): Promise<void> {
  const limit = parseWhole('--number', flags.number)
  const after = flags.after === undefined ? 0 : parseWhole('--after', flags.after)
  const parked = await withClient(configOf({ ...flags }), (hf) => hf.events.parked(group, { after, limit }))
  const next = parked.length === limit ? (parked.at(-1)?.event.seq ?? null) : null
  if (flags.json) return print(JSON.stringify({ parked, next }, null, 2))
  if (parked.length === 0) return print(`${group} has no parked events.`)
  for (const line of table(heads, parked.map(rowOf))) print(line)
  if (next !== null) print(paint('dim', `More: holdfast events parked ${group} --after ${next}`))
  print(paint('dim', `To replay them: holdfast events replay ${group} --parked`))
}

const heads = ['SEQ', 'EVENT', 'KIND', 'JOB', 'FAILURES', 'PARKED', 'REPLAY', 'ERROR']

function rowOf({ event, failures, parkedAt, replayAt, error }: ParkedEvent): Cell[] {
  return [
    { text: String(event.seq) },
    { text: event.type },
    { text: event.kind ?? '' },
    { text: event.jobId === null ? '' : shortId(event.jobId) },
    { text: String(failures) },
    { text: formatAge(parkedAt) },
    { text: replayAt ? 'requested' : '', look: 'cyan' },
    { text: error, look: 'red' },
  ]
}
