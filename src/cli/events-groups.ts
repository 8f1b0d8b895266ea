import type { Command } from 'commander'
import type { Group } from '../events/group.ts'
import { webhookGroup } from '../events/group-name.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { formatHolder, formatType } from './format-event.ts'
import { formatDuration } from './format-time.ts'
import { type Cell, table } from './table.ts'
import { oneLine, paint, print } from './terminal.ts'

/** Adds `holdfast events groups`. */
export function addGroups(events: Command): void {
  const command = events
    .command('groups')
    .description('List the groups that read the log, with their lag, parked events and failures.')
    .action((flags: { json?: true }) => listGroups(flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast events groups', 'all groups'],
    ['holdfast events groups --json', 'as JSON'],
  ])
}

async function listGroups(flags: { json?: true }): Promise<void> {
  const groups = await withClient(configOf({ ...flags }), (hf) => hf.events.groups())
  if (flags.json) return print(JSON.stringify({ groups }, null, 2))
  if (groups.length === 0) return print('No group reads the log. Create one with `hf.events.subscribe(name, …)`.')
  for (const line of table(heads, groups.map(rowOf))) print(line)
  for (const line of groups.flatMap(worries)) print(line)
}

const heads = ['NAME', 'TYPES', 'PARTITIONS', 'READERS', 'BEHIND', 'OLDEST', 'PARKED', 'FAILING']

function rowOf(group: Group): Cell[] {
  const { name, types, partitions, readers, behind, behindMs, parked, failing } = group
  return [
    { text: name },
    { text: formatType(types) },
    { text: String(partitions) },
    readers === 0 ? { text: '0', look: 'red' } : { text: String(readers) },
    { text: String(behind) },
    { text: behind > 0 && behindMs > 0 ? formatDuration(behindMs) : '' },
    parked > 0 ? { text: String(parked), look: 'yellow' } : { text: '0' },
    { text: failing.map(({ seq }) => seq).join(', '), look: 'red' },
  ]
}

/** Problems that need attention, in sentences. */
function worries({ name, readers, failing, parked, heldBy }: Group): string[] {
  const advice = name === webhookGroup ? 'start a worker or `holdfast reap`' : 'start a process that subscribes to it'
  return [
    ...(readers === 0 ? [paint('yellow', `${name} has no active reader: ${advice}.`)] : []),
    ...(heldBy
      ? [paint('yellow', `${name} is ${oneLine(formatHolder(heldBy))}; it continues when that transaction ends.`)]
      : []),
    ...failing.map(({ seq, failures, error }) =>
      paint(
        'red',
        `${name} failed ${failures === 1 ? 'once' : `${failures} times`} at event ${seq}: ${oneLine(error)}`,
      ),
    ),
    ...(parked > 0 ? [paint('dim', `${name} has ${parked} parked: holdfast events parked ${name}`)] : []),
  ]
}
