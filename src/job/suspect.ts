/** The number of lost workers from which on a job is suspected of killing them. */
export const suspectCrashes = 2

/**
 * Whether a job is suspected of killing its workers: it has lost two, or has lost one and may lose only one more. A suspect runs alone in its
 * process. So a job that does kill its workers uses up no crash budget but its own, and an innocent job can't be quarantined because of
 * another one.
 */
export function isSuspect({ crashes, crashBudget }: { crashes: number; crashBudget: number }): boolean {
  return crashes >= suspectCrashes || (crashes === 1 && crashBudget <= suspectCrashes)
}
