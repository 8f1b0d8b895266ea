import { hostname, userInfo } from 'node:os'

/** Who gives a command, for the record: the user of this machine. */
export function whoAmI(): string {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    return hostname() // a user without a name, as containers have them
  }
}
