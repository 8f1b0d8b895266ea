import type { GivenSettings } from '../config/config.ts'
import type { ErrorCode } from '../errors/errors.ts'
import type { Effect } from './kinds.ts'
import type { Handling } from './reading.ts'

/** What a process of a proof is. */
export type Role = 'worker' | 'submitter' | 'migrator' | 'reader' | 'remote'

/** A barrier to open, with as many parts; it expires after so many milliseconds, or never. */
export interface BarrierOrder {
  do: 'open'
  id: string
  parts: number
  expiresMs?: number
  /** Who owns the execution that waits, which is called like the barrier. */
  owner?: string
}

/** Where webhooks go, and what signs them. */
export interface WebhookOrder {
  url: string
  secret: string
}

/** What may be asked about events and webhooks. */
export type BusOrder =
  | { do: 'look-at-events' | 'replay-parked' | 'rewind' | 'read-once' }
  | { do: 'open-endpoint'; webhook: WebhookOrder }
  | { do: 'rotate'; id: string; secret: string }
  | { do: 'try-endpoint'; webhook: WebhookOrder }
  | { do: 'look-at-deliveries' | 'replay-dead' }
  | { do: 'replay-delivery'; id: string }

/** What the prover may ask of one of its processes. */
export type Order =
  | { do: 'start'; role: Role; url: string; settings: GivenSettings; module: string | undefined }
  | { do: 'stop' | 'end-heartbeat' }
  | { do: 'submit'; kind: string; key: string; webhook?: WebhookOrder }
  | { do: 'submit-many'; kind: string; keys: string[] }
  | { do: 'cancel' | 'redo' | 'await'; id: string }
  | { do: 'look'; id: string }
  | { do: 'pause' }
  | { do: 'reclaim'; pid: number }
  | BarrierOrder
  | BusOrder
  | { do: 'arrive'; id: string; parts: number[] }
  | { do: 'abort' | 'look-at-barrier'; id: string }

/** How an order ended: with the ids of jobs, or the words of barriers, that it was answered with. */
export type Answer =
  | { isDone: true; said: string[] }
  | { isDone: false; code: ErrorCode | 'unexpected'; message: string; isWire: boolean; state?: string }

/** What a process tells the prover. */
export type News =
  | { id: number; answer: Answer }
  | { effect: Effect }
  | { marked: string }
  | { handling: Handling }
  | { posted: string }
  | { isReady: true }
