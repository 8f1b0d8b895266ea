import type { Moment } from './facts.ts'

/** One limit, and who holds its slots. */
export interface OneLimitFacts {
  scope: 'kind' | 'queue'
  name: string
  /** The key that it is on; null if it is on the whole kind or queue. */
  key: string | null
  concurrency: number | null
  rate: number | null
  rateMs: number | null
  /** How many jobs may start now by its rate; null without a rate. */
  tokens: number | null
  holding: number
  /** The first few of them. */
  holders?: { id: string; sessionId: number; since: Moment }[]
}

/** The limits that apply to a job that waits at a gate. */
export interface LimitFacts {
  key: string
  /** Until when its key is held back, because another system asked to wait. */
  heldUntil: Moment | null
  /** Whether it waits at a gate at all. A job that was queued before the limit is sent there by the leader. */
  hasGate: boolean
  /** Whether the gate is open, opens by itself, or is about to be looked at. */
  isOpen: boolean
  limits: OneLimitFacts[]
}
