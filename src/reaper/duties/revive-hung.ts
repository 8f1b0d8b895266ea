import type { Duty } from '../duty.ts'
import { findHung } from '../revive.sql.ts'
import { reviving } from '../revive.ts'

/** Revives jobs whose deadline has passed although their worker is alive. */
export const reviveHung = (): Duty => reviving('reviveHung', findHung)
