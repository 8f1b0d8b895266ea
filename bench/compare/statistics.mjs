/** The percentile of that share; null if there are no values. */
export function percentile(values, share) {
  if (values.length === 0) return null
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
}

/** The median, and the spread of the rounds as a share of it. If a round hit its cap, the summary is only a lower bound. */
export function summary(values) {
  const known = values.filter((value) => value !== null && value !== undefined)
  if (known.length === 0) return null
  const capped = known.find((value) => typeof value === 'object')
  if (capped) return { atLeast: capped.atLeast, rounds: known }
  const sorted = known.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const median = sorted.length % 2 === 1 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2
  const spread = median === 0 ? 0 : (sorted.at(-1) - sorted[0]) / median
  return { median, spread, isNoisy: spread > 0.2, rounds: known }
}
