import type { Bulk } from '../bulk/bulk.ts'
import { type BulkOperation, ruleOf } from '../bulk/operations.ts'
import type { BulkPreview } from '../bulk/preview.ts'
import type { JobSummary } from '../reads/job.ts'
import { formatState, looks } from './format-job.ts'
import { formatAge } from './format-time.ts'
import { type Cell, table } from './table.ts'
import { type Look, paint } from './terminal.ts'

/** The color of each state of a bulk operation. */
export const bulkLooks: Record<Bulk['state'], Look> = { running: 'blue', finished: 'green', stopped: 'yellow' }

const barCells = 24

/** A count and a noun, as in `1,234 jobs`. */
export function countOf(count: number, noun = 'job'): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}

/** How many jobs, honestly: `at least` if there may be more. */
export function expectedOf({ count, isAtLeast }: { count: number; isAtLeast: boolean }): string {
  return `${isAtLeast ? 'at least ' : ''}${countOf(count)}`
}

/** What a preview found: the count, and a table of some jobs. */
export function previewLines(operation: BulkOperation, preview: BulkPreview): string[] {
  const would = `${capital(expectedOf(preview))} would be ${ruleOf(operation).done}.`
  return [...table(['ID', 'KIND', 'STATE', 'AGE', 'ERROR'], preview.sample.map(rowOf)), would]
}

function rowOf(job: JobSummary): Cell[] {
  return [
    { text: job.id },
    { text: job.kind },
    { text: formatState(job), look: looks[job.state] },
    { text: formatAge(job.submittedAt) },
    { text: job.error?.message ?? '', look: 'dim' },
  ]
}

/** How far an operation has come, with a bar, on one line. */
export function progressLine(bulk: Bulk): string {
  const { done, skipped, expected, isAtLeast, operation } = bulk
  const handled = done + skipped
  // what was counted may have changed since, and may have been only a part
  const share = expected === 0 ? 0 : Math.min(handled / expected, bulk.state === 'finished' ? 1 : 0.99)
  const filled = Math.round(share * barCells)
  const bar = `${'█'.repeat(filled)}${'░'.repeat(barCells - filled)}`
  const of = `${isAtLeast ? 'at least ' : ''}${expected.toLocaleString('en-US')}`
  const left = skipped > 0 ? `, ${skipped.toLocaleString('en-US')} skipped` : ''
  return `${bar} ${Math.floor(share * 100)}%  ${done.toLocaleString('en-US')} of ${of} ${ruleOf(operation).done}${left}`
}

/** How an operation ended, as a sentence. */
export function endLine({ id, operation, done, skipped, state, stopReason }: Bulk): string {
  const changed = `${countOf(done)} ${ruleOf(operation).done}`
  const left = skipped > 0 ? `, ${skipped.toLocaleString('en-US')} skipped (holdfast bulk show ${id})` : ''
  const stop = state === 'stopped' ? `; stopped${stopReason === null ? '' : `: ${stopReason}`}` : ''
  return `${changed}${left}${stop}.`
}

/** The conditions of an operation, as in `kind extract, error timeout`. */
export function conditionsOf({ filter }: Bulk): string {
  const { states, items, ...rest } = filter
  const words = Object.entries(rest).map(
    ([name, value]) => `${name} ${value instanceof Date ? value.toISOString() : value}`,
  )
  return [...words, `state ${states.join(' or ')}`, ...(items ? ['with items'] : [])].join(', ')
}

/** Everything about an operation. */
export function bulkLines(bulk: Bulk): string[] {
  const { askedBy, reason, change, rate, error, holder, isHeld, stoppedBy, stopReason } = bulk
  const entries: [string, string | null][] = [
    ['id', bulk.id],
    ['state', paint(bulkLooks[bulk.state], bulk.state)],
    ['jobs', conditionsOf(bulk)],
    ['change', changeOf(change)],
    ['progress', progressLine(bulk)],
    ['asked', `${bulk.askedAt.toISOString()}${askedBy === null ? '' : ` by ${askedBy}`}`],
    ['reason', reason],
    ['rate', rate === null ? null : `${countOf(rate)} per second`],
    ['process', isHeld ? holder : null],
    ['last error', error],
    ['ended', bulk.endedAt === null ? null : bulk.endedAt.toISOString()],
    ['stopped by', [stoppedBy, stopReason].filter((word) => word !== null).join(': ') || null],
  ]
  const shown = entries.filter((entry): entry is [string, string] => entry[1] !== null)
  return [paint('bold', `bulk ${bulk.operation}`), ...shown.map(([name, value]) => `  ${name.padEnd(11)} ${value}`)]
}

function changeOf({ from, priority, runAt }: Bulk['change']): string | null {
  if (priority !== undefined) return `priority ${priority}`
  if (runAt !== undefined) return `run at ${runAt.toISOString()}`
  return from === 'start' ? 'from the start' : null
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}
