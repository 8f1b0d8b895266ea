/** Who paused a queue and why, as far as known. */
export function formatPause({ pausedBy, reason }: { pausedBy?: string | null; reason?: string | null }): string {
  return `${pausedBy ? ` by ${pausedBy}` : ''}${reason ? ` (${reason})` : ''}`
}
