import type { Backoff } from './define.ts'

/** How long to wait after that many failures: exponential, capped, and spread by ±25 % so that a herd does not return at once. */
export function backoffMs(failures: number, backoff: Required<Backoff>, random: () => number = Math.random): number {
  const grown = Math.min(backoff.maxMs, backoff.baseMs * backoff.factor ** Math.max(0, failures - 1))
  return Math.round(grown * (0.75 + random() / 2))
}
