/**
 * Which duties there are, in the order in which a sweep runs them.
 *
 * - Sessions come first: a session must have ended before its jobs count as abandoned.
 * - Crashes of workers that came back are cleared before anything is revived, so that they can't quarantine a job.
 * - Jobs come before barriers: an item that is revived in this sweep must not count as late.
 * - A fan-out is expired, then stopped, then joined, so that one sweep can do all three.
 * - What can wait comes last: parked outcomes, reports, and removing old rows.
 *
 * A backlog must not keep the leader from noticing dead workers. So everything after the revivals shares a budget of a second per sweep. When
 * it is spent, the next sweep follows at once, and continues with the duties that were not reached.
 *
 * Duties that ask other systems or wait for table locks are not part of a sweep. Each runs in a loop of its own beside it, so that the
 * recovery bound depends on nothing but the database.
 */

import { clearReturned } from './duties/clear-returned.ts'
import { dropLog, type Retention } from './duties/drop-log.ts'
import { endSessions } from './duties/end-dead-sessions.ts'
import { endKeylessSessions } from './duties/end-keyless-sessions.ts'
import { expireFanOuts } from './duties/fan-outs/expire-barriers.ts'
import { joinDrainedFanOuts } from './duties/fan-outs/join-drained.ts'
import { recountFanOuts } from './duties/fan-outs/recount.ts'
import { requeueUnjoinable } from './duties/fan-outs/requeue-waiting.ts'
import { stopOrphanItems } from './duties/fan-outs/stop-orphan-items.ts'
import { stopUnstopped } from './duties/fan-outs/stop-unstopped.ts'
import { forgetSessionsAndRefusals } from './duties/forget-sessions-and-refusals.ts'
import { layLog } from './duties/lay-log.ts'
import { type Asking, askOwner } from './duties/owned-barriers/ask-owner.ts'
import { expireUnowned } from './duties/owned-barriers/expire-unowned.ts'
import { fireDrained } from './duties/owned-barriers/fire-drained.ts'
import { forgetOwnedBarriers } from './duties/owned-barriers/forget.ts'
import { recountOwned } from './duties/owned-barriers/recount.ts'
import { reportStrangeOwners } from './duties/owned-barriers/report-strange-owners.ts'
import { reopenGates } from './duties/reopen-gates.ts'
import { reportStranded } from './duties/report-stranded.ts'
import { reviveAbandoned } from './duties/revive-abandoned.ts'
import { reviveHung } from './duties/revive-hung.ts'
import { settleParked } from './duties/settle-parked.ts'
import type { Duty } from './duty.ts'

/** Makes the duties of one sweep loop. Some of them remember what they saw, so each loop has its own. */
export const makeDuties = (): readonly Duty[] => [
  endSessions(),
  endKeylessSessions,
  clearReturned(),
  reviveAbandoned(),
  reviveHung(),
  ...fanOutDuties(),
  ...ownedBarrierDuties,
  reopenGates(),
  settleParked,
  reportStranded,
  forgetSessionsAndRefusals,
]

const fanOutDuties = (): Duty[] => [
  expireFanOuts(),
  stopUnstopped(),
  stopOrphanItems(),
  joinDrainedFanOuts(),
  requeueUnjoinable(),
  recountFanOuts(),
]

const ownedBarrierDuties: Duty[] = [fireDrained, expireUnowned, recountOwned, forgetOwnedBarriers]

/** The same duties, for single sweeps. */
export const duties: readonly Duty[] = makeDuties()

/** The duties that ask the owners of barriers, alongside the sweep. Each owner has its own, so that a slow one delays no other. */
export function ownerDuties(asking: Asking): Duty[] {
  const names = Object.keys(asking.owners)
  return [reportStrangeOwners(asking.store, names), ...names.map((name) => askOwner(asking, name))]
}

/** The duties of the event log, alongside the sweep: they change tables, and wait for locks. */
export function logDuties(retention: Retention): Duty[] {
  return [layLog(retention), dropLog(retention)]
}
