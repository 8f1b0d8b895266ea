import { type Duty, report } from '../duty.ts'
import { endKeyless } from '../session.sql.ts'

const batch = 500

/**
 * Ends sessions of remote workers whose API key was revoked or has expired. Revoking a key ends its sessions directly; this duty covers keys
 * that expire, and processes that die while they revoke one.
 */
export const endKeylessSessions: Duty = {
  name: 'endKeyless',
  everyMs: 1_000,
  budget: 'unlimited',
  async run(store) {
    const ended = await store.run(endKeyless, { limit: batch })
    return report({ ended, isFull: ended.length === batch })
  },
}
