/** The class of session advisory locks. With the id of a session it identifies its lock; if the lock is gone, so is the process. */
export const sessionLockClass = 0x484f4c46

/** The number of that lock: the lower half of the id, because a lock has no room for more. Sequences may be set far ahead. */
export const sessionLockOf = (id: string): string => `(${id} & 2147483647)::int`
