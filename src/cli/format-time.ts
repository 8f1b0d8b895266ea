import { formatDuration } from '../errors/duration.ts'
import { HoldfastError } from '../errors/errors.ts'

export { formatDuration }

const unitsMs = { ms: 1, s: 1_000, min: 60_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** How long ago a time was. It never shows a time in the future, even if this clock is behind that of the database. */
export function formatAge(at: Date, nowMs = Date.now()): string {
  const ms = nowMs - at.getTime()
  return ms < 1_000 ? 'now' : formatDuration(ms)
}

/** The time of day, with milliseconds. */
export function formatClock(at: Date): string {
  const two = (value: number) => String(value).padStart(2, '0')
  const ms = String(at.getMilliseconds()).padStart(3, '0')
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${ms}`
}

/** Parses a duration such as `90`, `90s`, `500ms`, `5m`, `2h` or `1d` to milliseconds; a number without a unit means seconds. */
export function parseLength(flag: string, word: string): number {
  const [, number, unit = 's'] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/.exec(word.trim()) ?? []
  const unitMs = unitsMs[(unit || 's') as keyof typeof unitsMs]
  if (number !== undefined && unitMs !== undefined) return Math.round(Number(number) * unitMs)
  throw new HoldfastError(
    'option_invalid',
    `${flag} takes a duration such as 30, 90s, 500ms, 5m, 2h or 1d, not ${JSON.stringify(word)}.`,
  )
}

/** Parses a time such as `2030-01-31T08:00:00Z`. */
export function parseMoment(flag: string, word: string): Date {
  const at = /^\d{4}-\d{2}-\d{2}/.test(word) ? new Date(word) : new Date(Number.NaN)
  if (!Number.isNaN(at.getTime())) return at
  throw new HoldfastError(
    'option_invalid',
    `${flag} takes a timestamp such as 2030-01-31T08:00:00Z, not ${JSON.stringify(word)}.`,
  )
}

/** Parses a time, or how long ago it was, such as `12h`. */
export function parseSince(flag: string, word: string, nowMs = Date.now()): Date {
  if (/^[\d.]+\s*[a-z]*$/.test(word)) return new Date(nowMs - parseLength(flag, word))
  return parseMoment(flag, word)
}

/** Parses a whole number. */
export function parseWhole(flag: string, word: string): number {
  if (/^\d{1,15}$/.test(word)) return Number(word)
  throw new HoldfastError('option_invalid', `${flag} takes a whole number, not ${JSON.stringify(word)}.`)
}
