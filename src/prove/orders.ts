import type { NewBulkOperation } from '../bulk/request.ts'
import type { GivenSettings } from '../config/config.ts'
import type { ErrorCode } from '../errors/errors.ts'
import type { OverlapMode } from '../job/schedule.ts'
import type { OnConflict, Unique } from '../job/unique.ts'
import type { Effect } from './observed.ts'
import type { Handling } from './reader.ts'

/** What a process of a proof does. */
export type Role = 'worker' | 'submitter' | 'migrator' | 'reader' | 'remote'

/** Opens a barrier with so many parts, which expires after so many milliseconds or never. */
export interface BarrierOrder {
  do: 'open'
  id: string
  parts: number
  expiresMs?: number
  /** The owner of the waiting execution, which has the id of the barrier. */
  owner?: string
}

/** Where webhooks go, and the secret that signs them. */
export interface WebhookOrder {
  url: string
  secret: string
}

/** Orders about events and webhooks. */
export type BusOrder =
  | { do: 'list-events' | 'replay-parked' | 'rewind' | 'read-once' }
  | { do: 'open-endpoint'; webhook: WebhookOrder }
  | { do: 'rotate'; id: string; secret: string }
  | { do: 'try-endpoint'; webhook: WebhookOrder }
  | { do: 'list-deliveries' | 'replay-dead' }
  | { do: 'replay-delivery'; id: string }

/** Does something with a schedule. With `slots`, it has that many, one per second. */
export interface ScheduleOrder {
  do: 'schedule'
  name: string
  act: 'set' | 'read' | 'pause' | 'resume' | 'trigger' | 'backfill' | 'remove'
  kind?: string
  overlap?: OverlapMode
  slots?: number
}

/** Orders about bulk operations and queues. Each operation has an id, so that an order can be carried out twice. */
export type BulkOrder =
  | { do: 'bulk'; id: string; request: Omit<NewBulkOperation, 'id'> }
  | { do: 'stop-bulk'; id: string }
  | { do: 'hold-queue' | 'free-queue'; queue: string }

/** What the prover can order a process to do. */
export type Order =
  | { do: 'start'; role: Role; url: string; settings: GivenSettings; module: string | undefined }
  | { do: 'stop' | 'end-heartbeat' }
  | { do: 'submit'; kind: string; key: string; webhook?: WebhookOrder }
  | { do: 'submit-many'; kind: string; keys: string[] }
  | { do: 'cancel' | 'redo' | 'await'; id: string }
  | { do: 'submit-unique'; kind: string; unique: Unique; onConflict: OnConflict; delayMs?: number }
  | { do: 'signal'; id: string; name: string }
  | { do: 'read'; id: string }
  | { do: 'pause' | 'limit' | 'limit-remote' }
  | { do: 'reclaim'; pid: number }
  | BarrierOrder
  | BusOrder
  | ScheduleOrder
  | BulkOrder
  | { do: 'arrive'; id: string; parts: number[] }
  | { do: 'abort' | 'read-barrier'; id: string }

/** How an order ended. Its values are ids of jobs, or what barriers and webhooks answered. */
export type Answer =
  | { isDone: true; values: string[] }
  | { isDone: false; code: ErrorCode | 'unexpected'; message: string; isConnectionError: boolean; state?: string }

/** What a process reports by itself: its handlers' effects, executions marked failed, handled events, and webhooks it sends. */
export type MemberReport = { effect: Effect } | { marked: string } | { handling: Handling } | { posted: string }

/** What a process sends to the prover. */
export type MemberMessage = { id: number; answer: Answer } | MemberReport | { isReady: true }
