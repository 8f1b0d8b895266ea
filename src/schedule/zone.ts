/** Local times of time zones. Node has no function for them, but it formats the offset of any instant in any zone. */
const hourMs = 3_600_000
/** No zone changes its offset by more than a day at once. */
const widestMs = 25 * hourMs

const formats = new Map<string, Intl.DateTimeFormat>()

/** Whether the zone exists. */
export function isZone(zone: string): boolean {
  try {
    return formatOf(zone) !== undefined
  } catch {
    return false
  }
}

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone)
  if (known) return known
  const made = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
  // anyone may name zones in any spelling; there are fewer than a thousand of them
  if (formats.size > 2_000) formats.clear()
  formats.set(zone, made)
  return made
}

/** How many milliseconds the clocks of a zone are ahead of UTC at an instant. */
export function offsetAt(zone: string, ms: number): number {
  if (zone === 'UTC') return 0
  const [, sign, hours, minutes, seconds = '0'] =
    /GMT(?:([+-])(\d+):(\d+)(?::(\d+))?)?$/.exec(formatOf(zone).format(ms)) ?? []
  if (sign === undefined) return 0
  const size = Number(hours) * hourMs + Number(minutes) * 60_000 + Number(seconds) * 1_000
  return sign === '-' ? -size : size
}

/** The local time at an instant, as if it were UTC. */
export function wallAt(zone: string, ms: number): number {
  return ms + offsetAt(zone, ms)
}

/** The instants at which the clocks of a zone show a local time: none in a gap, two if the hour is repeated. */
export function instantsOf(zone: string, wall: number): number[] {
  const offsets = new Set([offsetAt(zone, wall - widestMs), offsetAt(zone, wall + widestMs), offsetAt(zone, wall)])
  return [...offsets]
    .map((offset) => wall - offset)
    .filter((ms) => wallAt(zone, ms) === wall)
    .sort((a, b) => a - b)
}

/** The first instant after a gap that contains this local time. */
export function endOfGap(zone: string, wall: number): number {
  return changeBetween(wall - widestMs, wall + widestMs, (ms) => wallAt(zone, ms) > wall)
}

/** When the clocks of a zone are next set back within a few hours; null if they are not. */
export function nextSetBack(zone: string, ms: number, withinMs = 3 * hourMs): number | null {
  const before = offsetAt(zone, ms)
  if (offsetAt(zone, ms + withinMs) >= before) return null
  return changeBetween(ms, ms + withinMs, (at) => offsetAt(zone, at) < before)
}

/** The first millisecond in a range from which on a condition holds. */
function changeBetween(from: number, to: number, holds: (ms: number) => boolean): number {
  let [low, high] = [from, to]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (holds(middle)) high = middle
    else low = middle
  }
  return high
}
