import type { Store } from '#holdfast/postgres/store'
import { reopenGates } from '#holdfast/reaper/duties/reopen-gates'

/** Runs the duty of the gates once, as a leader that has just started does. */
export async function runDuty(store: Store): Promise<void> {
  await reopenGates().run(store)
}
