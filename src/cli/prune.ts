import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import type { PruneReport } from '../engine/prune.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { print } from './terminal.ts'

interface Flags {
  dryRun?: true
  json?: true
}

// a batch is small, but counting a million jobs may take a while
const patienceMs = 600_000

/** Adds `holdfast prune`. */
export function addPrune(program: Command): void {
  const command = program
    .command('prune')
    .description('Remove finished jobs past their retention time now. The leader also does this automatically.')
    .option('--dry-run', 'Show what would be removed, without removing it.')
    .action((flags: Flags) => prune(flags))
  addSettings(addJson(command), [...clientSettings, 'keepMs', 'keepFailedMs', 'keepKeysMs', 'eventCapMs'])
  addExamples(command, [
    ['holdfast prune --dry-run', 'preview'],
    ['holdfast prune --keep-ms 7d --dry-run', 'preview keeping succeeded jobs for a week'],
  ])
}

async function prune({ dryRun, ...flags }: Flags): Promise<void> {
  const done = await withClient(patient(configOf({ ...flags })), (hf) => hf.prune({ dryRun: dryRun === true }))
  if (flags.json) return print(JSON.stringify(done, null, 2))
  for (const line of dryRun ? dueLines(done) : [removedLine(done)]) print(line)
}

function patient(config: Config): Config {
  return { ...config, statementTimeoutMs: Math.max(config.statementTimeoutMs, patienceMs) }
}

function removedLine({ removed, unreadBy }: PruneReport): string {
  const waits =
    unreadBy.length > 0 ? ` More are due, but these groups have not read their events yet: ${unreadBy.join(', ')}.` : ''
  return `Removed ${counted(removed, 'job')}.${waits}`
}

function dueLines({ due, isPartial, blockedBy }: PruneReport): string[] {
  const jobs = due.reduce((sum, one) => sum + one.jobs, 0)
  const items = due.reduce((sum, one) => sum + one.items, 0)
  const more = isPartial ? ' This counts only the oldest million finished jobs.' : ''
  const rows = due.map((one) => {
    const own = one.items > 0 ? `, with ${counted(one.items, 'item')}` : ''
    return `  ${one.kind}  ${one.state}  ${counted(one.jobs, 'job')}${own}`
  })
  const all = items > 0 ? ` with ${counted(items, 'item')}` : ''
  return [
    ...rows,
    `${counted(jobs, 'job')}${all} would be removed. Nothing was changed.${more}`,
    ...blockedLines(blockedBy),
  ]
}

function blockedLines(pids: number[]): string[] {
  if (pids.length === 0) return []
  return [`No jobs can be removed while another transaction locks holdfast.prune_mark: pid ${pids.join(', ')}.`]
}

function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}
