import type { Command } from 'commander'
import { mostCounted } from '../audit/audit.sql.ts'
import type { Audit, Violation } from '../audit/audit.ts'
import type { Config } from '../config/config.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { ladderSettings } from './ladder-words.ts'
import { oneLine, paint, print, progress } from './terminal.ts'
import { lengthWords, parseWhole } from './time-words.ts'

interface Flags {
  all?: true
  budget?: string
  json?: true
}

// of a big database even a cheap look may take a while, and nobody waits for it but who asked
const patienceMs = 3_600_000
const shown = 5

/** Adds `holdfast audit`. */
export function addAudit(program: Command): void {
  const command = program
    .command('audit')
    .description(
      'Check every invariant of the database, reading only. Ends with code 1 if one is broken or took too long.',
    )
    .option('--all', 'Look at every job; without it, where each job needs a look, at the latest 100,000.')
    .option('--budget <seconds>', 'How long one check may take before it is given up. Default: 10; with --all, 600.')
    .action((flags: Flags) => audit(flags))
  addSettings(addJson(command), [...clientSettings, ...ladderSettings])
  addExamples(command, [
    ['holdfast audit', 'safe on a live database'],
    ['holdfast audit --all --json', 'everything, for a program'],
  ])
  command.addHelpText(
    'after',
    '\nHow old an orphan may be follows from the settings: give those that your workers have.',
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
    lines.push(
      `${paint('yellow', '?')} ${paint('bold', invariant)}: not checked to the end; give it more time with --budget`,
    )
  const all = unfinished.length === 0 ? 'All' : `${checked.length - violations.length} of`
  const verdict =
    violations.length === 0
      ? `${all} ${checked.length + unfinished.length} invariants hold`
      : `${violations.length} of ${checked.length} invariants are broken`
  const { live, finished, events } = sizes
  const about = `${countWords(live)} live and ${countWords(finished)} finished jobs with ${countWords(events)} events`
  return [...lines, '', `${verdict}: ${about}, read in ${lengthWords(ms)}.`]
}

function countWords(count: number): string {
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
