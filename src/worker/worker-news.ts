import type { HoldfastError } from '../errors/errors.ts'
import type { Fence } from '../job/id.ts'
import type { Outcome } from '../settle/outcome.ts'
import type { Attempt } from './attempt.ts'

/** What happens in a worker, for whoever logs and counts. */
export interface WorkerNews {
  settled(attempt: Attempt, outcome: Outcome): void
  refused(fences: Fence[], write: string): void
  /** The lease is in doubt: all attempts were aborted. */
  doubted(): void
  /** The URL leads through a transaction pooler, although nobody said so. */
  pooled(): void
  /** The heartbeat thread died; another one follows. */
  threadDied(why: string): void
  /** A handler blocked the event loop for so long, and so many jobs that had not started were given back meanwhile. */
  gaveBack(count: number, blockedMs: number): void
  /** Too many handlers ignore their signal. Whoever owns this worker has to stop it, and to see to it that its process is replaced. */
  wornOut(error: HoldfastError): void
  /** This worker can't go on. Whoever owns it has to stop it, and what runs beside it. */
  failed(error: HoldfastError): void
  /** A handler ignored its signal for longer than the grace. So many do now. */
  unresponsive(attempt: Attempt, count: number): void
  /** One of those has returned after all. So many are left. */
  returned(attempt: Attempt, count: number): void
  /** Trouble that passes by itself; `part` says where, if it was not in the worker itself. */
  trouble(error: unknown, part?: string): void
}
