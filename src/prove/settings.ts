import { type Config, type GivenSettings, readConfig } from '../config/config.ts'
import { boundOf, ladder } from '../reaper/recovery-bound.ts'
import { claimSlackMs } from '../webhooks/sender.ts'
import type { Fault } from './faults.ts'

/** Short times, in the same proportions as the defaults, so that a recovery takes one second instead of ten. */
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
  // only the prover replaces the processes of a cell
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

/** The settings of a submitter: small batches, so that a bulk submit is a transaction of several statements. */
export const submitterSettings = { ...cellSettings, batchSize: 2 } as const satisfies GivenSettings

/** The configuration of every worker in a cell, independent of the environment. */
export function cellConfig(): Config {
  return readConfig(cellSettings, {})
}

/** What everything takes on top of its bound: a turn of a loop, the start of a handler. */
const slackMs = 500

/** The bound within which a cursor is read from again, whatever happened to its reader. */
export const readerBoundMs = cellSettings.readerLeaseMs + 2 * cellSettings.readerBeatMs + slackMs

/** The bound of a rung of the recovery ladder under the settings of the cells. */
export function boundFor(rung: Fault['rung']): number {
  const config = cellConfig()
  if (rung === 'claim ran out') return config.webhookTimeoutMs + claimSlackMs + config.pollMs + slackMs
  return ladder(config).find((one) => one.rung === rung)?.boundMs ?? boundOf(config)
}
