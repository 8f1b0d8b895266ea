import type { Backlog } from '../engine/deliveries.ts'
import type { Holdfast } from '../engine/engine.ts'
import type { Group } from '../engine/groups.ts'
import type { Pulse } from '../engine/pulse.ts'
import type { Queue } from '../engine/queues.ts'
import type { Recovery } from '../engine/recovery.ts'
import type { Session } from '../engine/sessions.ts'

/** How many jobs a second; null until two moments are known. */
export interface Rates {
  submitted: number
  finished: number
  failed: number
}

/** What `holdfast top` shows, at one moment. */
export interface Picture {
  /** By the clock of the database, from which all ages are counted. */
  at: Date
  rates: Rates | null
  queues: Queue[]
  sessions: Session[]
  recovery: Recovery
  groups: Group[]
  deliveries: Backlog
}

/** Takes pictures, one after the other. */
export interface Camera {
  take(hf: Holdfast): Promise<Picture>
}

// long enough for a steady figure, short enough to follow what happens
const windowMs = 5_000

/** Makes a camera. Rates come from what happened between its pictures of the last seconds. */
export function makeCamera(): Camera {
  let pulses: Pulse[] = []
  return {
    async take(hf) {
      const [pulse, queues, sessions, recovery, groups, deliveries] = await Promise.all([
        hf.pulse(pulses.at(-1)),
        hf.queues(),
        hf.sessions(),
        hf.recovery(),
        hf.events.groups(),
        hf.webhooks.backlog(),
      ])
      pulses = kept([...pulses, pulse])
      return { at: pulse.at, rates: ratesOf(pulses), queues, sessions, recovery, groups, deliveries }
    },
  }
}

/** Those of the window, and at least the last two; a log that ends before its own past is another one. */
function kept(pulses: readonly Pulse[]): Pulse[] {
  const last = pulses.at(-1) as Pulse
  const fromMs = last.at.getTime() - windowMs
  const isKept = ({ at, seq }: Pulse, index: number) =>
    seq <= last.seq && (at.getTime() >= fromMs || index >= pulses.length - 2)
  return pulses.filter(isKept)
}

/** What every pulse but the first has counted, over the time between the first and the last. */
export function ratesOf(pulses: readonly Pulse[]): Rates | null {
  const [first, ...others] = pulses
  const last = others.at(-1)
  if (!first || !last) return null
  const seconds = Math.max(0.001, (last.at.getTime() - first.at.getTime()) / 1000)
  const perSecond = (count: (pulse: Pulse) => number) => others.reduce((sum, pulse) => sum + count(pulse), 0) / seconds
  return {
    submitted: perSecond(({ submitted }) => submitted),
    finished: perSecond(({ finished }) => finished),
    failed: perSecond(({ failed }) => failed),
  }
}
