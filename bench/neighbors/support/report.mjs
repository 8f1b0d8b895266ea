/** How many times its quiet p99 a neighbor may have to wait. */
export const most = 2

/** Judges the samples of one attack, for each measure of its neighbor. */
export function judged(attack, samples) {
  const perSecond = samples.reduce((sum, one) => sum + one.perSecond, 0) / samples.length
  const hasEnded = samples.some((one) => one.hasEnded)
  return Object.keys(samples[0].quiet).map((what) => {
    const all = (when) => samples.flatMap((one) => one[when][what])
    const [quietMs, floorMs, attackedMs] = ['quiet', 'floor', 'attacked'].map((when) => p99(all(when)))
    const failed = all('attacked').filter((ms) => ms === Number.POSITIVE_INFINITY).length
    const ratio = attackedMs / quietMs
    // if a measure fails even without an attack, the ratio is NaN, which does not pass
    const isGood = ratio <= most && failed === 0 && !hasEnded
    const count = all('attacked').length
    return {
      attack,
      what,
      perSecond,
      quietMs,
      floorMs,
      attackedMs,
      floor: floorMs / quietMs,
      ratio,
      samples: count,
      failed,
      hasEnded,
      isGood,
    }
  })
}

function p99(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))]
}

const heads = ['attack', 'requests/s', 'neighbor', 'quiet p99', 'floor p99', 'attacked p99', 'floor', 'ratio', '', '']
const rightAligned = new Set([1, 3, 4, 5, 6, 7])

/** The results as lines of a table. */
export function tableOf(rows) {
  const cells = rows.map((row) => [
    row.attack,
    row.perSecond < 10 ? row.perSecond.toFixed(1) : String(Math.round(row.perSecond)),
    row.what,
    length(row.quietMs),
    length(row.floorMs),
    length(row.attackedMs),
    times(row.floor),
    times(row.ratio),
    row.isGood ? 'pass' : 'FAIL',
    [row.failed > 0 && `${row.failed} requests failed`, row.hasEnded && 'the server ended'].filter(Boolean).join(', '),
  ])
  const widths = heads.map((head, index) => Math.max(head.length, ...cells.map((row) => row[index].length)))
  const aligned = (cell, index) => (rightAligned.has(index) ? cell.padStart(widths[index]) : cell.padEnd(widths[index]))
  return [heads, ...cells].map((row) => row.map(aligned).join('  ').trimEnd())
}

function times(ratio) {
  return Number.isFinite(ratio) ? ratio.toFixed(1) : '∞'
}

function length(ms) {
  if (!Number.isFinite(ms)) return 'failed'
  return ms < 100 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`
}
