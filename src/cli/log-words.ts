import { failureWords } from '../engine/job-log.ts'
import type { Log } from '../engine/log.ts'
import { oneLine, paint } from './terminal.ts'
import { clockWords } from './time-words.ts'

/** A log for people: of our own lines only warnings and worse are worth the screen. */
export function logFor(tell: (line: string) => void): Log {
  return {
    debug: () => {},
    info: () => {},
    warn: (facts, message) => tell(`${paint('yellow', 'warning')}: ${factWords(facts, message)}`),
    error: (facts, message) => tell(`${paint('red', 'error')}: ${factWords(facts, message)}`),
  }
}

const failures: readonly string[] = Object.values(failureWords)

/** What a worker process wrote, for people: a log line of ours becomes a sentence, anything else stays as it is. */
export function workerLine(pid: number, line: string, logLevel: string): string | undefined {
  const log = parsed(line)
  if (!log) return `${paint('dim', `worker ${pid} │`)} ${line}`
  const { time, level, msg, name: _name, pid: _pid, ...facts } = log
  // the live view tells of failed attempts already
  if (failures.includes(String(msg))) return undefined
  const isSerious = Number(level) >= 40
  if (!isSerious && !['debug', 'trace'].includes(logLevel)) return undefined
  const told = paint(isSerious ? 'yellow' : 'dim', `${isSerious ? 'warning' : 'note'} of worker ${pid}`)
  return `${paint('dim', clockWords(new Date(Number(time))))}  ${told}: ${factWords(facts, String(msg))}`
}

/** A message with the facts that belong to it. */
function factWords(facts: object, message: string): string {
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
