import type { DatabaseClock } from '../clock.ts'
import { type Duty, report } from '../duty.ts'
import { findHung } from '../revive.sql.ts'
import { reviving } from '../revive.ts'
import { returnMs } from '../session.sql.ts'

/**
 * Revives jobs whose deadline has passed although their worker is alive. If their leases could not be written to for a while, outcomes first
 * have time to arrive. `watchedMs`: for how long this process has stood in for the leader.
 */
export function reviveHung(clock: DatabaseClock, watchedMs: () => number): Duty {
  const hung = reviving('reviveHung', (runner, some) => runner.run(findHung, { ...some, watchedMs: watchedMs() }))
  const isSteady = () => clock.steadyMs(performance.now()) >= returnMs
  return { ...hung, run: async (store) => (isSteady() ? hung.run(store) : report({})) }
}
