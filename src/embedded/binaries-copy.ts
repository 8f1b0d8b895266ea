import { randomBytes } from 'node:crypto'
import { chmod, copyFile, lstat, mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { type Account, closedTo, isRoot } from './account.ts'

/** Where root keeps what the account of Postgres must be able to reach. */
export const sharedFolder = '/var/lib/holdfast'

/** Copies the programs to a folder where the account can run them, once per version, and returns the folder. */
export async function copyBinaries(
  native: string,
  options: { version: string; account: Account | undefined; makeLinks: (native: string) => Promise<void> },
): Promise<string> {
  const folder = join(await findShelf(options.account), `${options.version}-${process.platform}-${process.arch}`)
  if (await exists(folder)) return folder
  const draft = `${folder}.draft-${randomBytes(4).toString('hex')}`
  try {
    await copyTree(native, draft)
    await options.makeLinks(draft)
    await rename(draft, folder)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    // another process was faster, and its copy is identical
    if (!(await exists(folder))) throw notCopied(folder, error)
  }
  return folder
}

function notCopied(folder: string, cause: unknown): HoldfastError {
  return new HoldfastError(
    'embedded_unavailable',
    `The Postgres programs could not be copied to ${folder} (${messageOf(cause)}). ` +
      'Fix this, or give Holdfast the URL of a Postgres server.',
    { cause },
  )
}

async function findShelf(account: Account | undefined): Promise<string> {
  const cache = isRoot() ? sharedFolder : join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'holdfast')
  const bases = [cache, join(tmpdir(), `holdfast-${process.getuid?.()}`)]
  const refusals: unknown[] = []
  for (const base of bases) {
    try {
      return await openShelf(base, account)
    } catch (error) {
      refusals.push(error)
    }
  }
  throw new HoldfastError(
    'embedded_unavailable',
    `The Postgres programs cannot be run from where they are installed, and cannot be copied to ${bases.join(' or ')}. ` +
      'Make one of these folders writable, or give Holdfast the URL of a Postgres server.',
    { cause: refusals[0] },
  )
}

async function openShelf(base: string, account: Account | undefined): Promise<string> {
  const shelf = join(base, 'bin')
  await openFolder(base)
  await openFolder(shelf)
  const closed = account && (await closedTo(account, shelf))
  if (closed) throw new Error(`${closed} is closed to the account ${account.name}.`)
  return shelf
}

/** Creates a folder that all may enter and only we may change, regardless of the umask. */
export async function openFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  const { uid, mode } = await lstat(folder)
  // in a shared temporary folder, anyone could have created this folder with programs for us to run
  if (uid !== process.getuid?.()) throw new Error(`${folder} belongs to another account.`)
  if ((mode & 0o777) !== 0o755) await chmod(folder, 0o755)
}

// not fs.cp, because others must be able to read the copy even if packages were installed with a restrictive umask
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  await chmod(to, 0o755)
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await copyTree(source, target)
    if (entry.isFile()) await copyProgram(source, target)
  }
}

async function copyProgram(source: string, target: string): Promise<void> {
  await copyFile(source, target)
  await chmod(target, (await stat(source)).mode & 0o100 ? 0o755 : 0o644)
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
