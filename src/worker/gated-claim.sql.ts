import { sql, statement } from '../postgres/sql.ts'
import type { ClaimBatch } from '../transitions/claim.sql.ts'
import type { GatedLane } from './gated-lanes.ts'

/** A claim of jobs that wait at gates. */
export interface GatedClaim {
  sessionId: number
  lanes: readonly GatedLane[]
  most: number
  /** The size of inputs and outputs at which the claim takes no more jobs. It takes the first job whatever its size. */
  mostBytes: number
  deadlinesMs: string
  isSuspect: boolean
  /** Where the look for hints starts: what the last claim returned. */
  after: string
}

/** Claims jobs through their gates: see src/transitions/gates.sql.ts. The last row is about the look itself. */
export const claimGated = statement<ClaimBatch | LookRow>()(
  'job.claim_gated',
  (p: GatedClaim) => sql`
  select *
  from holdfast.claim_gated(${p.sessionId}::bigint, ${p.lanes.map(({ queue }) => queue)}::text[], ${p.lanes.map(({ kind }) => kind)}::text[],
    ${p.lanes.map(({ stageCount }) => stageCount)}::smallint[], ${p.most}::int, ${p.mostBytes}::float8, ${p.deadlinesMs}::jsonb, ${p.isSuspect}::boolean,
    ${p.after}::text)`,
)

/** What a claim says about its look. */
export interface LookRow {
  lease_id: null
  /** 1: gates are left to look at. */
  lease_size: number
  /** Where the next look for hints starts. */
  kind: string
  /** In how many microseconds a gate opens by itself. */
  due_us: number | null
}
