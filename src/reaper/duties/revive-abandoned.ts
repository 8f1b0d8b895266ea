import type { Duty } from '../duty.ts'
import { findAbandoned } from '../revive.sql.ts'
import { reviving } from '../revive.ts'

/** Revives jobs whose session has ended or whose session row is gone. */
export const reviveAbandoned = (): Duty =>
  reviving('reviveAbandoned', (runner, some) => runner.run(findAbandoned, some))
