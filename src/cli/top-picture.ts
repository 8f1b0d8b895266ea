import type { Holdfast } from '../engine/engine.ts'
import type { Group } from '../events/group.ts'
import type { Queue } from '../reads/queues.ts'
import type { Recovery } from '../reads/recovery.ts'
import type { Session } from '../reads/sessions.ts'
import type { Throughput } from '../reads/throughput.ts'
import type { Backlog } from '../webhooks/deliveries.ts'

/** Jobs per second. */
export interface Rates {
  submitted: number
  finished: number
  failed: number
}

/** What `holdfast top` shows at one moment. */
export interface Picture {
  /** By the clock of the database; all ages are relative to it. */
  at: Date
  rates: Rates | null
  queues: Queue[]
  sessions: Session[]
  recovery: Recovery
  groups: Group[]
  deliveries: Backlog
}

/** Takes one picture after the other. */
export interface Camera {
  take(hf: Holdfast): Promise<Picture>
}

// long enough for a steady rate, short enough to follow what happens
const windowMs = 5_000

/** Makes a camera. Rates are computed from its pictures of the last seconds. */
export function makeCamera(): Camera {
  let samples: Throughput[] = []
  return {
    async take(hf) {
      const [throughput, queues, sessions, recovery, groups, deliveries] = await Promise.all([
        hf.throughput(samples.at(-1)),
        hf.queues(),
        hf.sessions(),
        hf.recovery(),
        hf.events.groups(),
        hf.webhooks.backlog(),
      ])
      samples = kept([...samples, throughput])
      return { at: throughput.at, rates: ratesOf(samples), queues, sessions, recovery, groups, deliveries }
    },
  }
}

/** The samples of the window, and at least the last two. A log that has become shorter is a different one. */
function kept(samples: readonly Throughput[]): Throughput[] {
  const last = samples.at(-1) as Throughput
  const fromMs = last.at.getTime() - windowMs
  const isKept = ({ at, seq }: Throughput, index: number) =>
    seq <= last.seq && (at.getTime() >= fromMs || index >= samples.length - 2)
  return samples.filter(isKept)
}

/** The counts of all samples but the first, over the time between the first and the last; null with fewer than two. */
export function ratesOf(samples: readonly Throughput[]): Rates | null {
  const [first, ...others] = samples
  const last = others.at(-1)
  if (!first || !last) return null
  const seconds = Math.max(0.001, (last.at.getTime() - first.at.getTime()) / 1000)
  const perSecond = (count: (throughput: Throughput) => number) =>
    others.reduce((sum, throughput) => sum + count(throughput), 0) / seconds
  return {
    submitted: perSecond(({ submitted }) => submitted),
    finished: perSecond(({ finished }) => finished),
    failed: perSecond(({ failed }) => failed),
  }
}
