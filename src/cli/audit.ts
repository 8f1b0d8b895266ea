import type { Command } from 'commander'
import { mostCounted } from '../audit/audit.sql.ts'
import type { Audit, Violation } from '../audit/audit.ts'
import type { Config } from '../config/config.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { ladderSettings } from './format-ladder.ts'
import { formatDuration, parseWhole } from './format-time.ts'
import { oneLine, paint, print, progress } from './terminal.ts'

interface Flags {
  all?: true
  budget?: string
  json?: true
}

// on a large database even a cheap check may take a while, and only the user waits for it
const patienceMs = 3_600_000
const shown = 5

/** Adds `holdfast audit`. */
export function addAudit(program: Command): void {
  const command = program
    .command('audit')
    .description(
      'Check every invariant of the database. Read-only. Exits with code 1 if an invariant is broken or its check times out.',
    )
    .option('--all', 'Check every job. By default, checks that read individual jobs cover the latest 100,000.')
    .option('--budget <seconds>', 'Timeout of each check. Default: 10; with --all, 600.')
    .action((flags: Flags) => audit(flags))
  addSettings(addJson(command), [...clientSettings, ...ladderSettings])
  addExamples(command, [
    ['holdfast audit', 'safe on a live database'],
    ['holdfast audit --all --json', 'every job, as JSON'],
  ])
  command.addHelpText(
    'after',
    '\nThe age at which a job counts as an orphan depends on the settings: pass the same ones as your workers.',
  )
}

async function audit(flags: Flags): Promise<void> {
  const how = {
    ...(flags.all && { latest: null }),
    ...(flags.budget && { budgetMs: 1000 * parseWhole('--budget', flags.budget) }),
    onCheck: (invariant: string, { number, of }: { number: number; of: number }) =>
      progress(`checking ${invariant} (${number} of ${of})`),
  }
  const { budget: _, ...settings } = flags
  const audited = await withClient(patient(configOf({ ...settings })), (hf) => hf.audit(how)).finally(() =>
    progress(''),
  )
  if (audited.violations.length + audited.unfinished.length > 0) process.exitCode = 1
  if (flags.json) return print(JSON.stringify(audited, null, 2))
  for (const line of auditLines(audited)) print(line)
}

function patient(config: Config): Config {
  return { ...config, statementTimeoutMs: Math.max(config.statementTimeoutMs, patienceMs) }
}

function auditLines({ violations, checked, unfinished, sizes, ms }: Audit): string[] {
  const broken = new Map(violations.map((violation) => [violation.invariant, violation]))
  const lines = checked.flatMap((invariant) => {
    const violation = broken.get(invariant)
    return violation ? violationLines(violation) : [`${paint('green', '✓')} ${invariant}`]
  })
  for (const invariant of unfinished)
    lines.push(`${paint('yellow', '?')} ${paint('bold', invariant)}: check timed out; allow more time with --budget`)
  const all = unfinished.length === 0 ? 'All' : `${checked.length - violations.length} of`
  const verdict =
    violations.length === 0
      ? `${all} ${checked.length + unfinished.length} invariants hold`
      : `${violations.length} of ${checked.length} invariants are broken`
  const { live, finished, events } = sizes
  const about = `${formatCount(live)} live and ${formatCount(finished)} finished jobs with ${formatCount(events)} events`
  return [...lines, '', `${verdict}: ${about}, read in ${formatDuration(ms)}.`]
}

function formatCount(count: number): string {
  return count < mostCounted ? String(count) : `about ${count}`
}

function violationLines({ invariant, total, examples }: Violation): string[] {
  const rest = total - Math.min(shown, examples.length)
  return [
    `${paint('red', '✗')} ${paint('bold', invariant)}: ${total === 1 ? '1 row breaks it' : `${total} rows break it`}`,
    ...examples.slice(0, shown).map(({ subject, found }) => `    ${oneLine(subject)} ${oneLine(found)}`),
    ...(rest > 0 ? [paint('dim', `    and ${rest} more`)] : []),
  ]
}
