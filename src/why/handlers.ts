import { plural } from './case.ts'
import type { WorkerFacts } from './facts.ts'

/** Handlers that still run although their jobs were cancelled or reassigned. */
export function formatLeftover(workers: WorkerFacts | null): string {
  const leftover = (workers?.busy ?? 0) - (workers?.holding ?? 0)
  if (leftover <= 0) return ''
  return ` and ${plural(leftover, 'handler')} of jobs that they no longer own`
}

/** Handlers that ignored their abort signal. */
export function formatUnresponsive(workers: WorkerFacts | null): string {
  const count = workers?.unresponsive ?? 0
  return count === 0 ? '' : `; ${plural(count, 'handler')} ignored ${count === 1 ? 'its' : 'their'} abort signal`
}
