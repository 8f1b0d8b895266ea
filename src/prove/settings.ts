import { type Config, type GivenSettings, readConfig } from '../config/config.ts'

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
  jobTimeoutMs: 20_000,
  statementTimeoutMs: 5_000,
  backoffBaseMs: 50,
  crashBudget: 20,
  concurrency: 8,
  batchSize: 50,
  poolSize: 3,
  logLevel: 'warn',
} as const satisfies GivenSettings

/** A submitter with small batches, so that a bulk submit takes a transaction of several statements. */
export const submitterSettings = { ...cellSettings, batchSize: 2 } as const satisfies GivenSettings

/** The configuration of every worker in a cell, whatever the environment says. */
export function cellConfig(): Config {
  return readConfig(cellSettings, {})
}
