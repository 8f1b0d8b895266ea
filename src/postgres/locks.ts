/** The class of session advisory locks. With the id of a session it identifies its lock; if the lock is gone, so is the process. */
export const sessionLockClass = 0x484f4c46

/** The class of the advisory locks that order a signal and the wait for it. The number is a hash of the id of the job. */
export const signalLockClass = 0x484f4c47

/** The number of that lock: the lower half of the id, because a lock has no room for more. Sequences may be set far ahead. */
export const sessionLockOf = (id: string): string => `(${id} & 2147483647)::int`
