import { readFileSync, type Stats } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { HoldfastError } from '../errors/errors.ts'

/** The account that Postgres runs as if we are root: it refuses to run as root. */
export interface Account {
  name: string
  uid: number
  gid: number
}

/** Whether this process is root. */
export function isRoot(): boolean {
  return process.getuid?.() === 0
}

/** The account for Postgres on this machine: `postgres` if it exists, otherwise `nobody`. */
export function unprivilegedAccount(): Account {
  const accounts = readFileSync('/etc/passwd', 'utf8').split('\n').map(parse)
  const account = ['postgres', '_postgres', 'nobody']
    .map((name) => accounts.find((each) => each.name === name && each.uid > 0))
    .find((each) => each !== undefined)
  if (account) return account
  throw new HoldfastError(
    'embedded_unavailable',
    'Postgres does not run as root, and this machine has neither an account "postgres" nor "nobody". ' +
      'Add one, run Holdfast as another user, or give it the URL of a Postgres server.',
  )
}

/** The first folder on the way to a path, or the path itself, that the account may not enter; undefined if there is none. */
export async function closedTo(account: Account, path: string): Promise<string | undefined> {
  const real = await realpath(path)
  const parent = dirname(real)
  const above = parent === real ? undefined : await closedTo(account, parent)
  return above ?? (mayDo(account, await stat(real), 0o1) ? undefined : real)
}

/** Whether the account has these rights on a file (1 execute or enter, 2 write, 4 read). Postgres runs without supplementary groups. */
export function mayDo(account: Account, file: Stats, rights: number): boolean {
  if (file.uid === account.uid) return ((file.mode >> 6) & rights) === rights
  if (file.gid === account.gid) return ((file.mode >> 3) & rights) === rights
  return (file.mode & rights) === rights
}

// some systems write the uid of nobody as -2
function parse(line: string): Account {
  const [name = '', , uid, gid] = line.split(':')
  return { name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }
}
