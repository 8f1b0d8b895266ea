/** The milliseconds of a day. */
export const dayMs = 86_400_000

const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: dayMs, w: 7 * dayMs } as const

/** A duration: milliseconds, or a number with a unit such as `90s`, `12h`, `30d` or `2w`. */
export type Duration = number | string

/** A duration in milliseconds; undefined if the value is not a duration. */
export function durationMs(given: unknown): number | undefined {
  if (typeof given === 'number') return Number.isInteger(given) && given >= 0 ? given : undefined
  if (typeof given !== 'string') return undefined
  const [, amount, unit] = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*$/.exec(given) ?? []
  return amount === undefined ? undefined : Math.round(Number(amount) * units[unit as keyof typeof units])
}

/** A duration in short form: `12 ms`, `3.4 s`, `5 min`, `2 h`, `3 d`. */
export function formatDuration(ms: number): string {
  const length = Math.max(0, ms)
  if (length < 999.5) return `${Math.round(length)} ms`
  if (length < 9_950) return `${(length / units.s).toFixed(1)} s`
  if (length < 2 * units.m) return `${Math.round(length / units.s)} s`
  if (length < 2 * units.h) return `${Math.round(length / units.m)} min`
  if (length < 2 * units.d) return `${Math.round(length / units.h)} h`
  return `${Math.round(length / units.d)} d`
}
