import type { Command } from 'commander'
import type { Bulk, SkippedJob } from '../bulk/bulk.ts'
import { type BulkState, bulkStates, skipReasons } from '../bulk/operations.ts'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import { parseJobId } from '../job/id.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { bulkLines, bulkLooks, conditionsOf, endLine } from './format-bulk.ts'
import { formatAge, parseWhole } from './format-time.ts'
import { type Cell, table } from './table.ts'
import { paint, print } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

/** Adds `holdfast bulk list`. */
export function addBulkList(bulk: Command): void {
  const command = bulk
    .command('list')
    .description('List bulk operations, newest first.')
    .option('--state <state>', `Only ${bulkStates.join(', ')}.`)
    .option('--tenant <tenant>', 'Only this tenant.')
    .option('--limit <number>', 'Number of operations, up to 1000.', '20')
    .action((flags: { state?: string; tenant?: string; limit: string; json?: true }) => list(flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast bulk list --state running', 'what is under way']])
}

async function list(flags: { state?: string; tenant?: string; limit: string; json?: true }): Promise<void> {
  const { state, tenant, limit } = flags
  const wanted = {
    limit: parseWhole('--limit', limit),
    ...(state !== undefined && { state: state as BulkState }),
    ...(tenant !== undefined && { tenant }),
  }
  const all = await withClient(configOf({ ...flags }), (hf) => hf.bulk.list(wanted))
  if (flags.json) return print(JSON.stringify({ operations: all }, null, 2))
  if (all.length === 0) return print('No bulk operations.')
  for (const line of table(['ID', 'OPERATION', 'STATE', 'DONE', 'SKIPPED', 'AGE', 'JOBS'], all.map(rowOf))) print(line)
}

function rowOf(bulk: Bulk): Cell[] {
  return [
    { text: bulk.id },
    { text: bulk.operation },
    { text: bulk.state, look: bulkLooks[bulk.state] },
    { text: `${bulk.done}/${bulk.isAtLeast ? '≥' : ''}${bulk.expected}` },
    { text: String(bulk.skipped) },
    { text: formatAge(bulk.askedAt) },
    { text: conditionsOf(bulk), look: 'dim' },
  ]
}

const mostShown = 20

/** Adds `holdfast bulk show <id>`. */
export function addBulkShow(bulk: Command): void {
  const command = bulk
    .command('show')
    .description('Show a bulk operation: its progress, who asked for it and why, and what it skipped.')
    .argument('<id>', 'Its id, or the last 8 characters.')
    .option('--skipped <number>', 'Number of skipped jobs to list, up to 1000.', String(mostShown))
    .action((word: string, flags: { skipped: string; json?: true }) => show(word, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast bulk show 099a8057 --skipped 1000', 'with everything that it skipped']])
}

async function show(word: string, flags: { skipped: string; json?: true }): Promise<void> {
  const limit = parseWhole('--skipped', flags.skipped)
  const { bulk, skipped } = await withClient(configOf({ ...flags }), async (hf) => {
    const found = await hf.bulk.get(await pickBulk(hf, word))
    return { bulk: found, skipped: limit === 0 ? [] : await hf.bulk.skipped(found.id, { limit }) }
  })
  if (flags.json) return print(JSON.stringify({ ...bulk, skippedJobs: skipped }, null, 2))
  for (const line of [...bulkLines(bulk), ...skippedLines(bulk, skipped)]) print(line)
}

function skippedLines({ skipped }: Bulk, listed: readonly SkippedJob[]): string[] {
  if (listed.length === 0) return []
  const rows = listed.map(({ job, reason, error }): Cell[] => [{ text: job }, { text: error ?? skipReasons[reason] }])
  const more = skipped > listed.length ? [paint('dim', `${listed.length} of ${skipped}; for more, use --skipped`)] : []
  return ['', ...table(['SKIPPED', 'REASON'], rows), ...more]
}

/** Adds `holdfast bulk stop <id>`. */
export function addBulkStop(bulk: Command): void {
  const command = bulk
    .command('stop')
    .description('Stop a bulk operation. What it has changed stays changed.')
    .argument('<id>', 'Its id, or the last 8 characters.')
    .option('--reason <text>', 'Reason, recorded with the operation.')
    .action((word: string, flags: { reason?: string; json?: true }) => stop(word, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast bulk stop 099a8057 --reason "wrong filter"', 'with the reason']])
}

async function stop(word: string, flags: { reason?: string; json?: true }): Promise<void> {
  const why = flags.reason === undefined ? {} : { reason: flags.reason }
  const stopped = await withClient(configOf({ ...flags }), async (hf) =>
    hf.bulk.stop(await pickBulk(hf, word), { by: whoAmI(), ...why }),
  )
  print(flags.json ? JSON.stringify(stopped, null, 2) : endLine(stopped))
}

const lookBack = 1_000

/** Resolves an argument to the id of a bulk operation: a complete id, or the end of one among the latest. */
async function pickBulk(hf: Holdfast, word: string): Promise<string> {
  const whole = parseJobId(word)
  if (whole) return whole
  if (!/^[0-9a-f]{6,12}$/i.test(word))
    throw new HoldfastError(
      'id_invalid',
      `${JSON.stringify(word)} is not the id of a bulk operation. Pass an id that \`holdfast bulk list\` shows, or its last 8 characters.`,
    )
  const all = (await hf.bulk.list({ limit: lookBack })).filter(({ id }) => id.endsWith(word.toLowerCase()))
  const [first, second] = all
  if (!first)
    throw new HoldfastError(
      'bulk_not_found',
      `None of the latest ${lookBack} bulk operations has an id that ends with ${word}.`,
    )
  if (second) throw new HoldfastError('id_invalid', `Several ids end with ${word}; give more characters.`)
  return first.id
}
