/**
 * Milliseconds on a clock that is never set back. Unlike `performance.now()`, it reads the same in every thread and process of a machine.
 */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000
}
