import type { HoldfastError } from '../errors/errors.ts'
import type { Fence } from '../job/id.ts'
import type { Outcome } from '../settle/outcome.ts'
import type { Attempt } from './attempt.ts'

/** Hears what happens in a worker, for logs and metrics. */
export interface WorkerObserver {
  settled(attempt: Attempt, outcome: Outcome): void
  refused(fences: Fence[], write: string): void
  /** The lease is in doubt: all attempts were aborted. */
  doubted(): void
  /** The URL leads through a transaction pooler, although the setting `pooled` is off. */
  pooled(): void
  /** The heartbeat thread died, and another one will be started. */
  threadDied(why: string): void
  /** A handler has blocked the event loop for `blockedMs`, and that many jobs that had not started were released. */
  gaveBack(count: number, blockedMs: number): void
  /** Too many handlers ignore their signal. The owner of this worker has to stop it, and have its process replaced. */
  wornOut(error: HoldfastError): void
  /** This worker can't continue. Its owner has to stop it and what runs next to it. */
  failed(error: HoldfastError): void
  /** A handler ignored its signal for the whole grace period. `count`: how many do now. */
  unresponsive(attempt: Attempt, count: number): void
  /** One of those handlers has returned after all. `count`: how many are left. */
  returned(attempt: Attempt, count: number): void
  /** An error that the worker recovers from. `part` says where it occurred, if not in the worker itself. */
  onError(error: unknown, part?: string): void
}
