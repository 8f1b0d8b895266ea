import type { Scenario } from './scenario.ts'
import { barriers, expiry } from './scenarios/barriers.ts'
import { bulk } from './scenarios/bulk.ts'
import { crash, staggeredPoison } from './scenarios/crash.ts'
import { drain } from './scenarios/drain.ts'
import { fanOut, join } from './scenarios/fan-out.ts'
import { flow } from './scenarios/flow.ts'
import { locked } from './scenarios/locked.ts'
import { migration } from './scenarios/migration.ts'
import { outage } from './scenarios/outage.ts'
import { readers } from './scenarios/readers.ts'
import { refused } from './scenarios/refused.ts'
import { remote } from './scenarios/remote.ts'
import { schedules } from './scenarios/schedules.ts'
import { stop } from './scenarios/stop.ts'
import { unclaimable } from './scenarios/unclaimable.ts'
import { blocked, unresponsive } from './scenarios/unresponsive.ts'
import { upkeep } from './scenarios/upkeep.ts'
import { webhooks } from './scenarios/webhooks.ts'
import { ambiguous, idle, work } from './scenarios/work.ts'

/** All scenarios, the cheapest first. */
export const scenarios: readonly Scenario[] = [
  work,
  flow,
  join,
  fanOut,
  barriers,
  bulk,
  remote,
  upkeep,
  refused,
  locked,
  unclaimable,
  readers,
  schedules,
  stop,
  unresponsive,
  blocked,
  expiry,
  crash,
  outage,
  drain,
  staggeredPoison,
  webhooks,
  ambiguous,
  idle,
  migration,
]

/** The scenarios that own a statement. */
export function ownersOf(statement: string): Scenario[] {
  return scenarios.filter(({ owns }) => owns?.includes(statement))
}
