import { HoldfastError, messageOf } from '../errors/errors.ts'
import type { Log } from './log.ts'

/** An error that repeats is logged again after this long, with its count. */
const repeatMs = 10_000

/** Recently logged errors, by log: an outage affects every part of a process at once, several times per second. */
const told = new WeakMap<Log, Map<string, { repeated: number }>>()

/**
 * Logs an error of a part that continues by itself: at once the first time, and then once every ten seconds while it repeats. Known errors are
 * logged in one line; unexpected ones include the stack.
 */
export function logError(log: Log, part: string, error: unknown, facts: object = {}): void {
  const recent = recentOf(log)
  const key = error instanceof HoldfastError ? error.message : `${part}: ${messageOf(error)}`
  const before = recent.get(key)
  if (before) {
    before.repeated += 1
    return
  }
  say(log, part, error, facts)
  const count = { repeated: 0 }
  recent.set(key, count)
  const again = () => {
    if (count.repeated === 0) return recent.delete(key)
    say(log, part, error, { ...facts, repeated: count.repeated })
    count.repeated = 0
    return setTimeout(again, repeatMs).unref()
  }
  setTimeout(again, repeatMs).unref()
}

function recentOf(log: Log): Map<string, { repeated: number }> {
  const known = told.get(log) ?? new Map<string, { repeated: number }>()
  told.set(log, known)
  return known
}

function say(log: Log, part: string, error: unknown, facts: object): void {
  if (error instanceof HoldfastError)
    log.warn({ part, ...facts, code: error.code, reason: error.message }, wordsFor(part, error))
  else log.error({ part, ...facts, err: error }, `unexpected error in the ${part}`)
}

function wordsFor(part: string, { code }: HoldfastError): string {
  return /^(database|schema)_/.test(code) ? 'database error; retrying' : `error in the ${part}; retrying`
}
