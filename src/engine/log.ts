import { pino } from 'pino'
import { printable } from '../errors/printable.ts'

/** The part of a pino logger that Holdfast uses. */
export interface Log {
  /** Logs a detail that helps to find errors. */
  debug(facts: object, message: string): void
  /** Logs something that happens as intended. */
  info(facts: object, message: string): void
  /** Logs a problem that needs attention but does not stop the work. */
  warn(facts: object, message: string): void
  /** Logs something that failed. */
  error(facts: object, message: string): void
}

/** How many bytes of log lines are kept while they can't be written. */
const mostKept = 4 * 1024 * 1024

/** A logger that writes lines of JSON to standard error, so that standard output stays free for data. */
export function makeLog(level: string): Log {
  const stderr = pino.destination({ dest: 2, sync: true, maxLength: mostKept })
  // the disk may be full, or the terminal gone: the lines are kept and written with a later one
  stderr.on('error', () => {})
  // a log is read on terminals, and JSON does not escape all characters that control them
  const write = (line: string) => void stderr.write(printable(line))
  return pino({ level, base: { name: 'holdfast', pid: process.pid } }, { write })
}

/** The same logger, but one that fails loses a line and nothing else: the caller has more important things to do. */
export function harmless(log: Log): Log {
  const lose = () => {} // there is no other place to report it
  const at = (level: keyof Log) => (facts: object, message: string) => {
    try {
      const told: unknown = log[level](facts, message)
      if (told instanceof Promise) told.catch(lose)
    } catch {
      lose()
    }
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
