/** With a session's id this makes the advisory lock whose absence says: that process is gone. */
export const sessionLockClass = 0x484f4c46
