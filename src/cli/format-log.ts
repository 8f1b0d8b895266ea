import { failureWords } from '../engine/job-log.ts'
import type { Log } from '../engine/log.ts'
import { formatClock } from './format-time.ts'
import { oneLine, paint } from './terminal.ts'

/** A log for people, which shows only warnings and errors. */
export function logFor(tell: (line: string) => void): Log {
  return {
    debug: () => {},
    info: () => {},
    warn: (facts, message) => tell(`${paint('yellow', 'warning')}: ${formatFact(facts, message)}`),
    error: (facts, message) => tell(`${paint('red', 'error')}: ${formatFact(facts, message)}`),
  }
}

const failures: readonly string[] = Object.values(failureWords)

/** Formats a line that a worker process wrote: our own log lines become sentences, and anything else stays as it is. */
export function workerLine(pid: number, line: string, logLevel: string): string | undefined {
  const log = parsed(line)
  if (!log) return `${paint('dim', `worker ${pid} │`)} ${line}`
  const { time, level, msg, name: _name, pid: _pid, ...facts } = log
  // the live view already shows failed attempts
  if (failures.includes(String(msg))) return undefined
  const isSerious = Number(level) >= 40
  if (!isSerious && !['debug', 'trace'].includes(logLevel)) return undefined
  const told = paint(isSerious ? 'yellow' : 'dim', `${isSerious ? 'warning' : 'note'} from worker ${pid}`)
  return `${paint('dim', formatClock(new Date(Number(time))))}  ${told}: ${formatFact(facts, String(msg))}`
}

/** A message with its facts. */
function formatFact(facts: object, message: string): string {
  const { reason, err, ...rest } = facts as { reason?: unknown; err?: { message?: unknown } }
  const why = reason ?? err?.message
  const others = Object.entries(rest).map(
    ([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`,
  )
  return oneLine(
    [message, why === undefined ? '' : `: ${why}`, others.length > 0 ? ` (${others.join(', ')})` : ''].join(''),
  )
}

function parsed(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{"level":')) return undefined
  try {
    return JSON.parse(line) as Record<string, unknown>
  } catch {
    return undefined
  }
}
