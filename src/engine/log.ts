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

/** A logger that writes lines of JSON to standard error, so that standard output stays free for data. */
export function makeLog(level: string): Log {
  const stderr = pino.destination({ dest: 2, sync: true })
  // a log is read on terminals, and JSON does not escape all characters that control them
  const write = (line: string) => void stderr.write(printable(line))
  return pino({ level, base: { name: 'holdfast', pid: process.pid } }, { write })
}
