import type { AuditOptions } from '../audit/audit.ts'
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import { boundOf } from '../reaper/recovery-bound.ts'

/** Options of an audit. */
export interface HowToAudit {
  /** For checks that scan jobs, how many of the latest jobs to scan; null for all. Default: 100,000. */
  latest?: number | null
  /** How long one check may take before it is abandoned and reported as unfinished. Default: 10 s, or ten minutes with `latest: null`. */
  budgetMs?: number
  /** Called before each check. */
  onCheck?: AuditOptions['onCheck']
}

/** Checks the options of an audit. */
export function auditOptionsOf(config: Config, { latest = 100_000, budgetMs, onCheck }: HowToAudit = {}): AuditOptions {
  if (budgetMs !== undefined && !(budgetMs >= 1))
    throw new HoldfastError('option_invalid', `The option budgetMs must be at least 1 ms, not ${budgetMs}.`)
  // the server must give up before the client does, which would look like a broken connection
  const mostMs = config.statementTimeoutMs * 0.9
  return {
    boundMs: boundOf(config),
    latest,
    budgetMs: Math.min(mostMs, budgetMs ?? (latest === null ? 600_000 : 10_000)),
    ...(onCheck && { onCheck }),
  }
}
