import type { Owner } from '../barrier/owner.ts'

/** The name of a proof's owner. */
export const ownerName = 'prover'

/** The execution that has ended by itself. All others run until they are marked failed. */
export const endedExecution = 'ended'

/**
 * The owner of the executions of a proof, in every worker. It remembers nothing, so that it is asked again for a mark that a leader did
 * not record before it died.
 */
export function proverOwner(onMark: (execution: string) => void): Owner {
  return {
    read: async (execution) => (execution === endedExecution ? 'final' : 'running'),
    markFailed: async (execution) => {
      onMark(execution)
      return 'done'
    },
  }
}
