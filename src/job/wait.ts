import { isName, nameRule } from './names.ts'

/** A stage that waits for a signal, which `hf.signal` sends. It holds no worker while it waits. */
export interface Waits {
  /** What to wait for. The payload of the signal is the output of the stage. */
  readonly wait: Wait
}

/** What a stage waits for, and for how long. */
export interface Wait {
  /** The name of the signal. Each stage of a kind waits for a signal of its own. */
  readonly signal: string
  /** How long to wait, in milliseconds from when the stage is reached. After that, the stage fails with signal_timeout. */
  readonly timeoutMs: number
}

/** The longest time that a job may be put off at once: a year. */
export const longestDelayMs = 365 * 86_400_000

/** Whether a job may be put off for this long. */
export function isDelay(ms: unknown): ms is number {
  return typeof ms === 'number' && ms >= 1 && ms <= longestDelayMs
}

/** What delays are allowed, as part of a sentence. */
export const delayRule = `milliseconds from 1 to ${longestDelayMs} (one year)`

/** What is wrong with a wait, as the end of a sentence that begins with the stage; undefined if nothing is. */
export function waitProblem(wait: unknown): string | undefined {
  if (typeof wait !== 'object' || wait === null) return 'whose `wait` must be { signal, timeoutMs }.'
  const { signal, timeoutMs } = wait as { signal?: unknown; timeoutMs?: unknown }
  if (!isName(signal)) return `that waits for the signal ${JSON.stringify(signal) ?? 'undefined'}; ${nameRule}.`
  if (timeoutMs === undefined) return 'that waits without a timeout; give it wait.timeoutMs.'
  return isDelay(timeoutMs) ? undefined : `with wait.timeoutMs ${String(timeoutMs)}; use ${delayRule}.`
}

/** The first signal that two stages wait for; undefined if there is none. */
export function sharedSignal(stages: readonly Partial<Waits>[]): string | undefined {
  const signals = stages.flatMap(({ wait }) => (wait ? [wait.signal] : []))
  return signals.find((signal, index) => signals.indexOf(signal) !== index)
}
