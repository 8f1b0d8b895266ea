/** Whether something is true, or was at a check within the last milliseconds. So short gaps between requests do not look like an idle server. */
export function lately(isNow: () => boolean, forMs: number): () => boolean {
  let untilMs = Number.NEGATIVE_INFINITY
  return () => {
    const nowMs = performance.now()
    if (isNow()) untilMs = nowMs + forMs
    return nowMs < untilMs
  }
}
