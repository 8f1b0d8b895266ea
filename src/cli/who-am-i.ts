import { hostname, userInfo } from 'node:os'

/** The user of this machine, for records of who did something. */
export function whoAmI(): string {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    return hostname() // in a container, a user may have no name
  }
}
