import { type Config, type GivenSettings, readConfig } from '../config/config.ts'
import { boundOf, ladder } from '../reaper/bound.ts'
import { claimSlackMs } from '../webhooks/sender.ts'
import type { Fault } from './faults.ts'

/** Short times, in the same relations as the defaults, so that a recovery takes a second and not ten. */
export const cellSettings = {
  heartbeatMs: 100,
  lostAfterMs: 500,
  leaseMs: 1_500,
  abortMarginMs: 150,
  leaderLeaseMs: 600,
  leaderRenewMs: 150,
  sweepMs: 50,
  pollMs: 200,
  holdMs: 500,
  drainMs: 150,
  timeoutGraceMs: 200,
  // the processes of a cell are replaced by the prover alone
  maxUnresponsive: 1_000,
  jobTimeoutMs: 20_000,
  statementTimeoutMs: 5_000,
  backoffBaseMs: 50,
  crashBudget: 20,
  concurrency: 8,
  batchSize: 50,
  poolSize: 3,
  readerLeaseMs: 1_500,
  readerBeatMs: 150,
  webhookTimeoutMs: 1_000,
  webhookBackoffBaseMs: 50,
  webhookAllow: ['127.0.0.1'],
  logLevel: 'warn',
} as const satisfies GivenSettings

/** A submitter with small batches, so that a bulk submit takes a transaction of several statements. */
export const submitterSettings = { ...cellSettings, batchSize: 2 } as const satisfies GivenSettings

/** The configuration of every worker in a cell, whatever the environment says. */
export function cellConfig(): Config {
  return readConfig(cellSettings, {})
}

/** What anything takes beside what its bound names: a turn of a loop, a start of a handler. */
const slackMs = 500

/** How soon a cursor is read from again, whatever became of its reader. */
export const readerBoundMs = cellSettings.readerLeaseMs + 2 * cellSettings.readerBeatMs + slackMs

/** The bound of a rung under the settings of the cells. */
export function boundFor(rung: Fault['rung']): number {
  const config = cellConfig()
  if (rung === 'claim ran out') return config.webhookTimeoutMs + claimSlackMs + config.pollMs + slackMs
  return ladder(config).find((one) => one.rung === rung)?.boundMs ?? boundOf(config)
}
