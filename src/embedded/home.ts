import { createHash, randomBytes } from 'node:crypto'
import { chmod, mkdir, readdir, readFile, realpath, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { HoldfastError } from '../errors/errors.ts'
import { type Account, closedTo, isRoot, unprivilegedAccount } from './account.ts'
import { createOnce, syncFolder } from './atomic-file.ts'
import { openFolder, sharedFolder } from './binaries-copy.ts'
import { isLockName } from './lock.ts'

/** The requested folder, the folder of its data (usually the same), and the account that Postgres runs as there. */
export interface Home {
  asked: string
  path: string
  account: Account | undefined
}

const pointerName = 'location.json'
const ourNames = ['pg', 'password', 'embedded.json', 'postgres.log', 'postgres.log.1', pointerName]

/** Creates the requested folder if it is missing, and finds or creates the folder of its data. */
export async function openHome(dir: string, log: (line: string) => void): Promise<Home> {
  await mkdir(resolve(dir), { recursive: true })
  const asked = await realpath(dir)
  await refuseForeign(asked)
  if (!isRoot()) return { asked, path: asked, account: undefined }
  const path = (await pointedTo(asked)) ?? (await chooseFor(asked, unprivilegedAccount()))
  const account = await accountFor(path)
  if (path !== asked) log(`The data of ${asked} is kept in ${path}: Postgres runs as ${account.name} and needs access.`)
  await letPass(path, account, asked)
  return { asked, path, account }
}

/** Finds the folder of the data, if the requested folder exists. It changes nothing. */
export async function findHome(dir: string): Promise<Pick<Home, 'asked' | 'path'> | undefined> {
  const asked = await realpath(dir).catch(() => undefined)
  if (!asked) return undefined
  return { asked, path: (await pointedTo(asked)) ?? asked }
}

/** The tag of the processes of a home. It identifies the folder itself, regardless of the path or mount that leads to it. */
export async function tagOf(home: string): Promise<string> {
  const { dev, ino } = await stat(home)
  return `holdfast-${createHash('sha256').update(`${dev} ${ino}`).digest('hex').slice(0, 16)}`
}

/** Removes our files from the requested folder and from that of its data, and each folder if nothing else is in it. */
export async function emptyHome({ asked, path }: Pick<Home, 'asked' | 'path'>): Promise<void> {
  for (const folder of new Set([path, asked])) {
    const names = (await readdir(folder)).filter(isOurs)
    await Promise.all(names.map((name) => rm(join(folder, name), { recursive: true, force: true })))
    if ((await readdir(folder)).length === 0) await rm(folder, { recursive: true })
  }
}

function isOurs(name: string): boolean {
  return ourNames.includes(name.replace(/\.draft-\w+$/, '')) || isLockName(name) || name.startsWith('pg.new-')
}

// a mount point may contain lost+found, a repository a .gitignore; anything else belongs to someone else
async function refuseForeign(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name !== 'lost+found' && !name.startsWith('.'))
  if (names.length === 0 || names.some((name) => name.startsWith(pointerName) || isLockName(name))) return
  if (await readFile(join(folder, 'pg', 'PG_VERSION')).catch(() => undefined)) return
  throw new HoldfastError(
    'data_folder_unusable',
    `The folder ${folder} is not empty and contains no Holdfast data (it contains ${names.slice(0, 3).join(', ')}). ` +
      'Give Holdfast a folder of its own.',
  )
}

async function pointedTo(asked: string): Promise<string | undefined> {
  const text = await readFile(join(asked, pointerName), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const { home } = JSON.parse(text) as { home: string }
  if (await stat(home).catch(() => undefined)) return home
  throw new HoldfastError(
    'data_folder_unusable',
    `The data of ${asked} was kept in ${home}, which no longer exists. Restore it, or remove ${join(asked, pointerName)} ` +
      'to start without data.',
  )
}

async function chooseFor(asked: string, account: Account): Promise<string> {
  if (await stat(join(asked, 'pg')).catch(() => undefined)) return asked
  const closed = await closedTo(account, dirname(asked))
  return closed ? relocate(asked, account, closed) : asked
}

async function relocate(asked: string, account: Account, closed: string): Promise<string> {
  const name = createHash('sha256').update(asked).digest('hex').slice(0, 16)
  // not only the hash: someone who removed the requested folder wants to start over, without the old data
  const home = join(sharedFolder, 'data', `${name}-${randomBytes(3).toString('hex')}`)
  try {
    for (const folder of [sharedFolder, dirname(home), home]) await openFolder(folder)
  } catch (cause) {
    throw new HoldfastError(
      'data_folder_unusable',
      `Postgres does not run as root, the account ${account.name} cannot enter ${closed}, and ${sharedFolder} cannot ` +
        'be used instead. Choose a data folder elsewhere, or run Holdfast as another user.',
      { cause },
    )
  }
  const about = 'Postgres may not run as root, and its account cannot enter this folder. The data is in "home".'
  const isFirst = await createOnce(join(asked, pointerName), `${JSON.stringify({ home, about }, null, 2)}\n`)
  await syncFolder(asked)
  if (isFirst) return home
  await rm(home, { recursive: true })
  return (await pointedTo(asked)) ?? asked
}

// data that an ordinary user created stays with that user, so that both the user and root can start it
async function accountFor(home: string): Promise<Account> {
  const owner = await stat(join(home, 'pg')).catch(() => undefined)
  if (!owner || owner.uid === 0) return unprivilegedAccount()
  return { name: `uid ${owner.uid}`, uid: owner.uid, gid: owner.gid }
}

// only the right to pass through: the other files in the home stay inaccessible to the account
async function letPass(home: string, account: Account, asked: string): Promise<void> {
  const { mode, uid } = await stat(home)
  if (uid !== account.uid && (mode & 0o011) !== 0o011) await chmod(home, (mode & 0o7777) | 0o011)
  const closed = await closedTo(account, home)
  if (!closed) return
  throw new HoldfastError(
    'data_folder_unusable',
    `Postgres runs as ${account.name} and cannot reach its data in ${asked}, because it cannot enter ${closed}. ` +
      'Give it access to that folder, or move the data.',
  )
}
