import type { Command } from 'commander'
import type { Bulk } from '../bulk/bulk.ts'
import type { BulkFilter } from '../bulk/filter.ts'
import { type BulkOperation, ruleOf } from '../bulk/operations.ts'
import type { NewBulkOperation } from '../bulk/request.ts'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import { pause } from '../service/service.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { endLine, expectedOf, previewLines, progressLine } from './format-bulk.ts'
import { parseLength, parseMoment, parseSince, parseWhole } from './format-time.ts'
import { statesIn } from './jobs.ts'
import { listenForEnd } from './signals.ts'
import { complain, print, progress } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

interface Flags {
  kind?: string
  queue?: string
  tenant?: string
  state?: string
  error?: string
  errorText?: string
  text?: string
  since?: string
  until?: string
  endedSince?: string
  endedUntil?: string
  items?: true
  all?: true
  rate?: string
  reason?: string
  dryRun?: true
  detach?: true
  fromStart?: true
  runAt?: string
  delay?: string
  json?: true
}

const pollMs = 250
/** How long nothing has to happen before the command says what is missing. */
const quietMs = 10_000

const examples: Record<BulkOperation, readonly (readonly [string, string])[]> = {
  cancel: [['holdfast bulk cancel --queue imports --reason "wrong file"', 'all jobs of a queue that have not ended']],
  redo: [
    ['holdfast bulk redo --kind extract --error timeout --ended-since 2h', 'what timed out in the last two hours'],
  ],
  delete: [['holdfast bulk delete --kind probe --state succeeded', 'finished jobs of one kind']],
  priority: [['holdfast bulk priority 1 --tenant acme --kind report', 'queued reports of a tenant go first']],
  reschedule: [['holdfast bulk reschedule --kind sync --delay 2h', 'queued jobs of one kind, two hours from now']],
}

/** Adds `holdfast bulk <operation>`. */
export function addBulkStart(bulk: Command, operation: BulkOperation): void {
  const command = bulk.command(operation).description(ruleOf(operation).meaning)
  if (operation === 'priority') command.argument('<priority>', '1 (first) to 4 (last).')
  addFilters(command)
  if (operation === 'redo') command.option('--from-start', 'Start from the first stage; completed stages run again.')
  if (operation === 'reschedule')
    command
      .option('--run-at <time>', 'When the jobs run: 2030-01-31T08:00:00Z.')
      .option('--delay <duration>', 'How long from now the jobs run: 30s, 2h, or 0 for now.')
  command
    .option('--rate <number>', 'Change at most this many jobs per second.')
    .option('--reason <text>', 'Reason, recorded with the operation and with each job.')
    .option('--dry-run', 'Show how many jobs match, and some of them, without changing anything.')
    .option('--detach', 'Start the operation and return without waiting for its end.')
    .action((...args: unknown[]) => {
      const [flags, word] = operation === 'priority' ? [args[1], args[0]] : [args[0], undefined]
      return run(operation, flags as Flags, word as string | undefined)
    })
  addSettings(addJson(command), clientSettings)
  addExamples(command, examples[operation])
}

function addFilters(command: Command): void {
  command
    .option('--kind <kind>', 'Only this kind.')
    .option('--queue <queue>', 'Only this queue.')
    .option('--tenant <tenant>', 'Only this tenant.')
    .option('--state <states>', 'Only these states, comma-separated.')
    .option('--error <code>', 'Only jobs that ended with this error code.')
    .option('--error-text <text>', 'Only jobs whose error message contains this text.')
    .option('--text <text>', 'Only jobs whose input, as JSON, contains this text.')
    .option('--since <moment>', 'Only jobs submitted since this time: 2030-01-31T08:00:00Z, or 12h for 12 hours ago.')
    .option('--until <moment>', 'Only jobs submitted before this time; same formats as --since.')
    .option('--ended-since <moment>', 'Only jobs that ended since this time.')
    .option('--ended-until <moment>', 'Only jobs that ended before this time.')
    .option('--items', 'Change fan-out items one by one.')
    .option('--all', 'Every job that the operation applies to; required if there is no other condition.')
}

async function run(operation: BulkOperation, flags: Flags, word: string | undefined): Promise<void> {
  const config = configOf({ ...flags })
  const request = requestOf(operation, flags, word)
  await withClient(config, async (hf) => {
    if (flags.dryRun) return preview(hf, request, flags)
    const started = await hf.bulk.start({ ...request, by: whoAmI() })
    const last = flags.detach ? started : await follow(hf, started)
    if (flags.json) return print(JSON.stringify(last, null, 2))
    print(last.state === 'running' ? underWay(last) : endLine(last))
  })
}

function underWay({ id, expected, isAtLeast, operation }: Bulk): string {
  const count = expectedOf({ count: expected, isAtLeast })
  return `${id}  ${operation} of ${count} is under way. Watch it with: holdfast bulk show ${id}`
}

async function preview(hf: Holdfast, request: NewBulkOperation, { json }: Flags): Promise<void> {
  const found = await hf.bulk.preview({ operation: request.operation, filter: request.filter })
  if (json) return print(JSON.stringify(found, null, 2))
  if (found.count === 0 && !found.isAtLeast) return print('No job matches. Nothing was changed.')
  for (const line of previewLines(request.operation, found)) print(line)
  print('Nothing was changed.')
}

/** Shows progress until the operation ends, or until Ctrl-C: the operation then goes on without this command. */
async function follow(hf: Holdfast, started: Bulk): Promise<Bulk> {
  const { signal } = listenForEnd({ hurriedBy: ['SIGINT'], onHurry: () => process.exit(130) })
  const startedMs = performance.now()
  let [bulk, hasHinted] = [started, false]
  while (bulk.state === 'running' && !signal.aborted) {
    progress(progressLine(bulk))
    const isIdle = !bulk.isHeld && bulk.holder === null && performance.now() - startedMs > quietMs
    if (isIdle && !hasHinted) {
      hasHinted = true
      progress('')
      complain(
        'No process has taken it yet. It starts once a worker or `holdfast reap` runs; Ctrl-C leaves it waiting.',
      )
    }
    await pause(pollMs, signal)
    bulk = await hf.bulk.get(bulk.id)
  }
  progress('')
  return bulk
}

function requestOf(operation: BulkOperation, flags: Flags, word: string | undefined): NewBulkOperation {
  const { rate, reason, fromStart, runAt, delay } = flags
  return {
    operation,
    filter: filterOf(flags),
    ...(rate !== undefined && { rate: parseWhole('--rate', rate) }),
    ...(reason !== undefined && { reason }),
    ...(fromStart && { from: 'start' as const }),
    ...(word !== undefined && { priority: parseWhole('The priority', word) }),
    ...(runAt !== undefined && { runAt: parseMoment('--run-at', runAt) }),
    ...(delay !== undefined && { delayMs: parseLength('--delay', delay) }),
  }
}

function filterOf(flags: Flags): BulkFilter {
  const { kind, queue, tenant, error, errorText, text, items, all } = flags
  const texts = Object.entries({ kind, queue, tenant, error, errorText, text })
  const since = (flag: string, moment: string | undefined) => moment && parseSince(flag, moment)
  const times = Object.entries({
    since: since('--since', flags.since),
    until: since('--until', flags.until),
    endedSince: since('--ended-since', flags.endedSince),
    endedUntil: since('--ended-until', flags.endedUntil),
  })
  if (flags.state === '') throw new HoldfastError('option_invalid', '--state takes at least one state.')
  return {
    ...Object.fromEntries([...texts, ...times].filter(([, value]) => value !== undefined)),
    ...(flags.state !== undefined && { state: statesIn(flags.state) }),
    ...(items && { items }),
    ...(all && { all }),
  }
}
