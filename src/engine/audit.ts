import type { AuditOptions } from '../audit/audit.ts'
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import { boundOf } from '../reaper/bound.ts'

/** How to audit. */
export interface HowToAudit {
  /** How many of the latest jobs are checked where it takes a look at each. Default 100,000; null for all. */
  latest?: number | null
  /** How long one check may take before it is given up and reported as unfinished. Default 10 s; with `latest: null`, ten minutes. */
  budgetMs?: number
  /** Told before each check. */
  onCheck?: AuditOptions['onCheck']
}

/** How to audit, checked. */
export function auditOptionsOf(config: Config, { latest = 100_000, budgetMs, onCheck }: HowToAudit = {}): AuditOptions {
  if (budgetMs !== undefined && !(budgetMs >= 1))
    throw new HoldfastError('option_invalid', `The option budgetMs must be milliseconds from 1, not ${budgetMs}.`)
  // the server must give up before the client does: that would look like a connection that broke
  const mostMs = config.statementTimeoutMs * 0.9
  return {
    boundMs: boundOf(config),
    latest,
    budgetMs: Math.min(mostMs, budgetMs ?? (latest === null ? 600_000 : 10_000)),
    ...(onCheck && { onCheck }),
  }
}
