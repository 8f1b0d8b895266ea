import { oneLine, paint } from './terminal.ts'
import { clockWords } from './time-words.ts'

const levels: [least: number, word: string][] = [
  [50, 'error'],
  [40, 'warning'],
  [30, 'info'],
  [0, 'debug'],
]

/**
 * What a worker process wrote, for people: a log line of ours becomes a sentence, anything else stays as
 * it is. Of our own lines only warnings and worse are worth the screen, unless somebody asked for all.
 */
export function workerLine(pid: number, line: string, logLevel: string): string | undefined {
  const log = parsed(line)
  if (!log) return `${paint('dim', `worker ${pid} │`)} ${line}`
  const { time, level, msg, reason, err } = log
  if (Number(level) < 40 && !['debug', 'trace'].includes(logLevel)) return undefined
  const [, word = ''] = levels.find(([least]) => Number(level) >= least) ?? []
  const why = reason ?? (err as { message?: unknown } | undefined)?.message
  const told = paint(Number(level) >= 40 ? 'yellow' : 'dim', `${word} from worker ${pid}`)
  const sentence = why === undefined ? String(msg) : `${msg}: ${why}`
  return `${paint('dim', clockWords(new Date(Number(time))))}  ${told}: ${oneLine(sentence)}`
}

function parsed(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{"level":')) return undefined
  try {
    return JSON.parse(line) as Record<string, unknown>
  } catch {
    return undefined
  }
}
