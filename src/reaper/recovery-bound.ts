import type { Config } from '../config/config.ts'
import { returnMs } from './session.sql.ts'

/** One rung of the recovery ladder: what it detects, and when the affected jobs move again at the latest. */
export interface Rung {
  rung: string
  when: string
  boundMs: number
  made: string
}

/** Allowance for the claim after a revival, on top of the poll that finds the job if its wake-up is lost. */
const slackMs = 500

/** The recovery ladder under this configuration, fastest rung first. */
export function ladder(config: Config): Rung[] {
  // the leader may have died with the worker; then a new one must be elected first, and both times run from the same moment
  const electedMs = config.leaderLeaseMs + config.leaderRenewMs
  const afterMs = config.sweepMs + config.pollMs + slackMs
  // after a database outage, every worker first gets time to come back
  const backMs = electedMs + Math.max(config.lostAfterMs, returnMs)
  const known = (noticedMs: number) => Math.max(noticedMs, electedMs) + afterMs
  return [
    {
      rung: 'child exited',
      when: 'a supervised worker process exits for any reason',
      boundMs: config.pollMs + slackMs,
      made: 'pollMs + 500',
    },
    {
      rung: 'lock gone',
      when: 'kill -9, crash, out of memory or reboot of the worker: its lock is released with its connection',
      boundMs: known(config.lostAfterMs),
      made: 'max(lostAfterMs, leaderLeaseMs + leaderRenewMs) + sweepMs + pollMs + 500',
    },
    {
      rung: 'lease ran out',
      when: 'network partition, frozen process, transaction pooler; database outage, counted from its end',
      boundMs: known(Math.max(config.leaseMs, backMs)),
      made: `max(leaseMs, leaderLeaseMs + leaderRenewMs + max(lostAfterMs, ${returnMs})) + sweepMs + pollMs + 500`,
    },
    {
      rung: 'deadline passed',
      when: 'a handler hangs while its process is alive; counted from its timeout',
      boundMs: config.holdMs + 2 * config.timeoutGraceMs + afterMs,
      made: 'timeout + holdMs + 2 × timeoutGraceMs + sweepMs + pollMs + 500',
    },
  ]
}

/** How long it takes at most until a lost job moves again. Hung handlers are excluded, because they wait for their own timeouts. */
export function boundOf(config: Config): number {
  return Math.max(
    ...ladder(config)
      .slice(0, 3)
      .map(({ boundMs }) => boundMs),
  )
}

/** How many jobs can be lost at once for the bounds of the ladder to hold. */
export const crowd = 1_000
const crowdMs = 1_000

/** How much later than the ladder says the last of this many lost jobs moves. Jobs are moved in batches. */
export function laterOf(jobs: number): number {
  return Math.max(0, Math.ceil(jobs / crowd) - 1) * crowdMs
}
