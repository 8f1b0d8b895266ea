import type { Command } from 'commander'
import type { FailureGroup } from '../bulk/failures.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { expectedOf } from './format-bulk.ts'
import { formatAge, parseSince, parseWhole } from './format-time.ts'
import { type Cell, table } from './table.ts'
import { paint, print } from './terminal.ts'

interface Flags {
  kind?: string
  tenant?: string
  since?: string
  items?: true
  limit: string
  json?: true
}

/** Adds `holdfast failures`. */
export function addFailures(program: Command): void {
  const command = program
    .command('failures')
    .description('Show failed jobs by kind and error, the most frequent first, each with its latest example.')
    .option('--kind <kind>', 'Only this kind.')
    .option('--tenant <tenant>', 'Only this tenant.')
    .option('--since <moment>', 'Only jobs that failed since this time: 2030-01-31T08:00:00Z, or 12h for 12 hours ago.')
    .option('--items', 'Include fan-out items.')
    .option('--limit <number>', 'Number of groups, up to 1000.', '20')
    .action((flags: Flags) => show(flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast failures', 'all failed jobs'],
    ['holdfast failures --kind extract --since 2h', 'one kind, in the last two hours'],
  ])
}

async function show(flags: Flags): Promise<void> {
  const { kind, tenant, since, items } = flags
  const wanted = {
    limit: parseWhole('--limit', flags.limit),
    ...(kind !== undefined && { kind }),
    ...(tenant !== undefined && { tenant }),
    ...(since !== undefined && { since: parseSince('--since', since) }),
    ...(items && { items }),
  }
  const found = await withClient(configOf({ ...flags }), (hf) => hf.failures(wanted))
  if (flags.json) return print(JSON.stringify(found, null, 2))
  if (found.groups.length === 0) return print('No failed jobs.')
  for (const line of table(['COUNT', 'KIND', 'ERROR', 'LATEST', 'JOB', 'MESSAGE'], found.groups.map(rowOf))) print(line)
  print(paint('dim', `${expectedOf(found)}. Run them again with: holdfast bulk redo --kind <kind> --error <error>`))
}

function rowOf({ kind, code, message, count, latestAt, latest }: FailureGroup): Cell[] {
  return [
    { text: count.toLocaleString('en-US') },
    { text: kind },
    { text: code, look: 'red' },
    { text: formatAge(latestAt) },
    { text: latest.id },
    { text: message, look: 'dim' },
  ]
}
