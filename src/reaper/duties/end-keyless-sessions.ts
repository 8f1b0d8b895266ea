import type { Duty } from '../duty.ts'
import { ending } from '../ending.ts'
import { endKeyless } from '../session.sql.ts'

/**
 * Ends sessions of remote workers whose API key was revoked or has expired. Revoking a key ends its sessions directly; this duty covers keys
 * that expire, and processes that die while they revoke one.
 */
export function endKeylessSessions(): Duty {
  const endSessions = ending()
  return {
    name: 'endKeyless',
    everyMs: 1_000,
    budget: 'unlimited',
    run: (store) => endSessions(store, (runner, some) => runner.run(endKeyless, some)),
  }
}
