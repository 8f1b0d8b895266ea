import type { Config } from '../config/config.ts'
import { returnMs } from './session.sql.ts'

/** One rung of the recovery ladder: what is noticed, and how soon its jobs move again at the latest. */
export interface Rung {
  rung: string
  when: string
  boundMs: number
  made: string
}

/** What a claim takes after a revival woke the workers: the next poll, if even the wake-up is lost. */
const slackMs = 500

/** The recovery ladder under this configuration, fastest rung first. */
export function ladder(config: Config): Rung[] {
  // the leader may have died with the worker, so a new one must first be elected; both count from the same moment
  const electedMs = config.leaderLeaseMs + config.leaderRenewMs
  const afterMs = config.sweepMs + config.pollMs + slackMs
  // after an outage of the database, everybody first gets the time to come back
  const backMs = electedMs + Math.max(config.lostAfterMs, returnMs)
  const known = (noticedMs: number) => Math.max(noticedMs, electedMs) + afterMs
  return [
    {
      rung: 'child exited',
      when: 'a supervised worker process ends, however it ends',
      boundMs: config.pollMs + slackMs,
      made: 'pollMs + 500',
    },
    {
      rung: 'lock gone',
      when: 'kill -9, crash, out of memory, reboot of the worker: its lock goes with its connection',
      boundMs: known(config.lostAfterMs),
      made: 'max(lostAfterMs, leaderLeaseMs + leaderRenewMs) + sweepMs + pollMs + 500',
    },
    {
      rung: 'lease ran out',
      when: 'network cut, frozen process, a transaction pooler; an outage of the database, counted from its end',
      boundMs: known(Math.max(config.leaseMs, backMs)),
      made: `max(leaseMs, leaderLeaseMs + leaderRenewMs + max(lostAfterMs, ${returnMs})) + sweepMs + pollMs + 500`,
    },
    {
      rung: 'deadline passed',
      when: 'a handler hangs although its process lives; counted from its time-out',
      boundMs: config.holdMs + 2 * config.timeoutGraceMs + afterMs,
      made: 'time-out + holdMs + 2 × timeoutGraceMs + sweepMs + pollMs + 500',
    },
  ]
}

/** The latest moment at which any lost job moves again, hung handlers aside: those wait for their own time-outs. */
export function boundOf(config: Config): number {
  return Math.max(
    ...ladder(config)
      .slice(0, 3)
      .map(({ boundMs }) => boundMs),
  )
}
