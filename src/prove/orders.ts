import type { GivenSettings } from '../config/config.ts'
import type { ErrorCode } from '../errors/errors.ts'
import type { Effect } from './kinds.ts'

/** What a process of a proof is. */
export type Role = 'worker' | 'submitter' | 'migrator'

/** What the prover may ask of one of its processes. */
export type Order =
  | { do: 'start'; role: Role; url: string; settings: GivenSettings; module: string | undefined }
  | { do: 'stop' }
  | { do: 'submit'; kind: string; key: string }
  | { do: 'submit-many'; kind: string; keys: string[] }
  | { do: 'cancel' | 'redo' | 'await'; id: string }
  | { do: 'look'; id: string }
  | { do: 'pause' }
  | { do: 'reclaim'; pid: number }

/** How an order ended. */
export type Answer =
  | { isDone: true; ids: string[] }
  | { isDone: false; code: ErrorCode | 'unexpected'; message: string; isWire: boolean; state?: string }

/** What a process tells the prover. */
export type News = { id: number; answer: Answer } | { effect: Effect } | { isReady: true }
