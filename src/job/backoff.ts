import type { Backoff } from './define.ts'

/** The backoff of a stage: its own values, else those of the settings. */
export function backoffOf(
  settings: { backoffBaseMs: number; backoffMaxMs: number },
  own: Backoff = {},
): Required<Backoff> {
  return {
    baseMs: own.baseMs ?? settings.backoffBaseMs,
    factor: own.factor ?? 2,
    maxMs: own.maxMs ?? settings.backoffMaxMs,
  }
}

/** How long to wait after this many failures: exponential, spread by ±25 % so that not all retry at once, and never above the maximum. */
export function backoffMs(failures: number, backoff: Required<Backoff>, random: () => number = Math.random): number {
  // after a thousand failures the factor is infinite, and nothing times that is not a number
  const grown = backoff.baseMs && Math.min(backoff.maxMs, backoff.baseMs * backoff.factor ** Math.max(0, failures - 1))
  const longest = Math.min(backoff.maxMs, 1.25 * grown)
  const shortest = 0.75 * grown
  return Math.round(shortest + random() * (longest - shortest))
}
