import { endedItems } from '../job/fan-out.ts'
import type { FanOutProgress, Item, Straggler } from '../reads/fan-outs.ts'
import { formatDuration } from './format-time.ts'
import { type Look, oneLine, paint } from './terminal.ts'

/** What is shown about one fan-out. */
export interface FanOutView extends FanOutProgress {
  /** The items that have been running the longest. */
  stragglers: Straggler[]
  /** The first items that failed. */
  failures: Item[]
}

type Part = 'succeeded' | 'failed' | 'cancelled' | 'running' | 'queued'

// distinguished by shape as well as by color: not everyone sees colors, and a pipe has none
const parts: Record<Part, { cell: string; look: Look }> = {
  succeeded: { cell: '█', look: 'green' },
  failed: { cell: '✗', look: 'red' },
  cancelled: { cell: '╳', look: 'dim' },
  running: { cell: '▒', look: 'blue' },
  queued: { cell: '░', look: 'cyan' },
}
const names = Object.keys(parts) as Part[]
const barCells = 40

/** Draws the items of a fan-out by state. Every state that occurs gets at least one cell. */
export function itemBar(counts: Record<Part, number>, cells = barCells): string {
  return cellsOf(counts, cells)
    .map(({ name, count }) => paint(parts[name].look, parts[name].cell.repeat(count)))
    .join('')
}

/** How many cells each state gets: its share, but at least one. They add up to the width of the bar. */
export function cellsOf(counts: Record<Part, number>, cells = barCells): { name: Part; count: number }[] {
  const shown = names.filter((name) => counts[name] > 0)
  const total = shown.reduce((sum, name) => sum + counts[name], 0)
  const given = shown.map((name) => ({ name, count: Math.max(1, Math.floor((counts[name] / total) * cells)) }))
  const largest = given.toSorted((a, b) => counts[b.name] - counts[a.name])[0]
  if (largest) largest.count += cells - given.reduce((sum, { count }) => sum + count, 0)
  return given
}

/** A fan-out, as lines. */
export function fanOutLines(fan: FanOutView): string[] {
  const settled = endedItems(fan)
  const numbers = names.filter((name) => fan[name] > 0).map((name) => paint(parts[name].look, `${fan[name]} ${name}`))
  const total = fan.total === null ? `${settled} so far, more to come` : `${settled}/${fan.total}`
  return [
    `${itemBar(fan)} ${total}${numbers.length > 0 ? `: ${numbers.join(', ')}` : ''}${formatPace(fan, settled)}`,
    ...fan.stragglers.map(stragglerLine),
    ...fan.failures.map(
      ({ key, error }) =>
        `${paint('red', 'failed')} ${oneLine(key)}: ${oneLine(error?.message ?? 'no error recorded')}`,
    ),
    ...(fan.failed > fan.failures.length ? [paint('dim', `… ${fan.failed - fan.failures.length} more failed`)] : []),
  ]
}

function formatPace({ isComplete, ageMs, perSecond, etaMs }: FanOutView, settled: number): string {
  if (isComplete === true) return `, in ${formatDuration(ageMs)}`
  if (settled === 0) return ''
  const rate = `${perSecond.toFixed(perSecond < 10 ? 1 : 0)}/s`
  return etaMs === null ? `, ${rate}` : `, ${rate}, about ${formatDuration(etaMs)} left`
}

function stragglerLine({ key, state, attempt, crashes, sessionId, deadlineAt }: Straggler): string {
  const where = sessionId === null ? '' : ` in session ${sessionId}`
  const losses = crashes > 0 ? `, lost ${crashes} workers` : ''
  const until = deadlineAt ? `, at most ${formatDuration(deadlineAt.getTime() - Date.now())} more` : ''
  return `${paint('blue', state)} ${oneLine(key)}: attempt ${attempt}${where}${losses}${until}`
}
