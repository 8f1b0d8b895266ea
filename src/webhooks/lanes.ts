import type { ClaimRoom } from './delivery.sql.ts'

/**
 * How many deliveries may be in flight, and where. A receiver that takes seconds gets few at a time, and all that are slow together
 * never get everything: so a fast one is never behind them.
 */
export interface Lanes {
  room(): ClaimRoom
  begin(lane: string): void
  /** One has ended. Null if it says nothing about how fast the receiver is. */
  end(lane: string, ms: number | null): void
  /** How many are in flight. */
  readonly size: number
}

/** A lane that was never heard of gets as few as a slow one. */
const fewest = 2
const mostInLane = 16
/** A receiver that takes so long is slow. */
const slowMs = 1_000
/** How many a lane gets is about how many it can take in this time. */
const shareMs = 3_200
const slowShare = 0.75
const mostKnown = 10_000

interface Lane {
  inFlight: number
  averageMs: number | null
}

/** Makes the lanes of a sender. */
export function makeLanes(most: number): Lanes {
  const lanes = new Map<string, Lane>()
  let size = 0

  const isSlow = ({ averageMs }: Lane) => averageMs !== null && averageMs >= slowMs

  /** Those heard of longest ago are forgotten first. */
  function forgetSome(): void {
    for (const [name, lane] of lanes) {
      if (lanes.size <= mostKnown) return
      if (lane.inFlight === 0) lanes.delete(name)
    }
  }

  return {
    room() {
      // those that are idle and unheard of get what every other lane gets
      const known = [...lanes.entries()].filter(([, lane]) => lane.inFlight > 0 || lane.averageMs !== null)
      const slowInFlight = known.reduce((sum, [, lane]) => sum + (isSlow(lane) ? lane.inFlight : 0), 0)
      const limit = Math.max(0, most - size)
      return {
        limit,
        slowLimit: Math.max(0, Math.min(limit, Math.floor(most * slowShare) - slowInFlight)),
        most: fewest,
        lanes: known.map(([name]) => name),
        mosts: known.map(([, lane]) => Math.max(0, capOf(lane.averageMs) - lane.inFlight)),
        slows: known.map(([, lane]) => isSlow(lane)),
      }
    },
    begin(name) {
      const lane = lanes.get(name) ?? { inFlight: 0, averageMs: null }
      // the latest goes to the end of the map
      lanes.delete(name)
      lanes.set(name, lane)
      lane.inFlight++
      size++
      forgetSome()
    },
    end(name, ms) {
      size--
      const lane = lanes.get(name)
      if (!lane) return
      lane.inFlight--
      if (ms !== null) lane.averageMs = lane.averageMs === null ? ms : lane.averageMs * 0.6 + ms * 0.4
    },
    get size() {
      return size
    },
  }
}

function capOf(averageMs: number | null): number {
  if (averageMs === null) return fewest
  return Math.max(fewest, Math.min(mostInLane, Math.floor(shareMs / Math.max(1, averageMs))))
}
