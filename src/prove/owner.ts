import type { Owner } from '../barrier/owner.ts'

/** What the owner of a proof is called. */
export const ownerName = 'prover'

/** The execution that has ended by itself. All others run until they are marked. */
export const endedExecution = 'ended'

/**
 * The owner of the executions of a proof, in every worker. It remembers nothing, so that a mark whose outcome a dead leader never wrote
 * down is asked for once more.
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
