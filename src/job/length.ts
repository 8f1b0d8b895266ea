const unitsMs = { s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** A length of time in few letters: `12 ms`, `3.4 s`, `5 min`, `2 h`, `3 d`. */
export function lengthWords(ms: number): string {
  const length = Math.max(0, ms)
  if (length < 999.5) return `${Math.round(length)} ms`
  if (length < 9_950) return `${(length / unitsMs.s).toFixed(1)} s`
  if (length < 2 * unitsMs.min) return `${Math.round(length / unitsMs.s)} s`
  if (length < 2 * unitsMs.h) return `${Math.round(length / unitsMs.min)} min`
  if (length < 2 * unitsMs.d) return `${Math.round(length / unitsMs.h)} h`
  return `${Math.round(length / unitsMs.d)} d`
}
