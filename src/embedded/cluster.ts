import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, lchown, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { HoldfastError } from '../errors/errors.ts'
import { syncFolder } from './atomic-file.ts'
import { type Binaries, program } from './binaries.ts'
import type { Home } from './home.ts'
import { tagArguments } from './leftovers.ts'
import { explainOutput } from './trouble.ts'

/** The name of the database and of its owner. */
export const database = 'holdfast'

/** The environment of the Postgres programs, without variables that could point them to another server or folder. */
export const environment: NodeJS.ProcessEnv = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }

interface Making {
  home: Home
  binaries: Binaries
  tag: string
  durable: boolean
}

/** Creates the cluster if there is none, refuses one of another major version, and returns the password of its owner. */
export async function openCluster(making: Making): Promise<string> {
  await removeDrafts(making.home.path)
  const version = await versionOf(making.home.path)
  if (version === undefined) return initialize(making)
  if (version !== making.binaries.major) throw otherVersion(making, version)
  await disown(making.home)
  return (await readPassword(making.home.path)) ?? resetPassword(making, clusterPath(making.home.path))
}

/** The folder of the cluster inside a home. */
export function clusterPath(home: string): string {
  return join(home, 'pg')
}

/** The password of the cluster's owner; undefined if it is missing or not readable. */
export async function readPassword(home: string): Promise<string | undefined> {
  return (await readFile(join(home, 'password'), 'utf8').catch(() => '')).trim() || undefined
}

// under another name until the last step, so that a start that dies partway leaves no cluster that looks complete
async function initialize(making: Making): Promise<string> {
  const { home, binaries, tag, durable } = making
  const draft = join(home.path, `pg.new-${randomBytes(4).toString('hex')}`)
  await mkdir(draft, { mode: 0o700 })
  if (home.account) await chown(draft, home.account.uid, home.account.gid)
  try {
    const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
    const access = [`--username=${database}`, '--auth-local=reject', '--auth-host=scram-sha-256']
    const rest = ['--no-instructions', ...(durable ? [] : ['--no-sync']), '-D', draft]
    await run(making, program(binaries, 'initdb'), [...tagArguments(tag), ...locale, ...access, ...rest])
    const password = await resetPassword(making, draft, `create database ${database}`)
    await rename(draft, clusterPath(home.path))
    if (durable) await syncFolder(home.path)
    return password
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    throw error
  }
}

async function resetPassword(making: Making, cluster: string, ...more: string[]): Promise<string> {
  const password = randomBytes(24).toString('hex')
  const path = join(making.home.path, 'password')
  await rm(path, { force: true })
  await writeFile(path, password, { mode: 0o600, flag: 'wx', flush: making.durable })
  await runAlone(making, cluster, [`alter role ${database} password '${password}'`, ...more])
  return password
}

/** Runs statements on a cluster without a server, in a single-user process. */
async function runAlone(making: Making, cluster: string, statements: string[]): Promise<void> {
  const settings = [
    '-c',
    'exit_on_error=on',
    '-c',
    `fsync=${making.durable ? 'on' : 'off'}`,
    '-c',
    'log_checkpoints=off',
  ]
  const args = ['--single', ...tagArguments(making.tag), ...settings, '-D', cluster, 'postgres']
  await run(making, program(making.binaries, 'postgres'), args, statements.map((each) => `${each}\n`).join(''))
}

async function run({ home }: Making, path: string, args: string[], input = ''): Promise<void> {
  const child = spawn(path, args, { ...identity(home), cwd: '/', env: environment, stdio: 'pipe' })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += String(text)))
  child.stdin.on('error', () => {}) // it exited before it read everything; its exit code shows why
  child.stdin.end(input)
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code !== 0) throw explainOutput('The data folder could not be initialized for Postgres.', output, home.asked)
}

/** The account that a Postgres program runs as. The ids are signed, because spawn expects the -2 of nobody on some systems that way. */
export function identity({ account }: Pick<Home, 'account'>): { uid?: number; gid?: number } {
  return account ? { uid: account.uid | 0, gid: account.gid | 0 } : {}
}

async function removeDrafts(home: string): Promise<void> {
  const drafts = (await readdir(home)).filter((name) => name.startsWith('pg.new-'))
  await Promise.all(drafts.map((name) => rm(join(home, name), { recursive: true, force: true, maxRetries: 5 })))
}

async function versionOf(home: string): Promise<string | undefined> {
  const cluster = await stat(clusterPath(home)).catch(() => undefined)
  if (!cluster) return undefined
  const version = await readFile(join(clusterPath(home), 'PG_VERSION'), 'utf8').catch(() => undefined)
  if (version) return version.trim()
  throw new HoldfastError(
    'data_folder_unusable',
    `${clusterPath(home)} contains no Postgres data. Move it away, or choose another data folder.`,
  )
}

// a cluster that root restored from a backup belongs to root, and Postgres accepts only one that belongs to its own account
async function disown({ path, account }: Home): Promise<void> {
  if (!account || (await stat(clusterPath(path))).uid === account.uid) return
  const names = await readdir(clusterPath(path), { recursive: true })
  for (const name of ['', ...names]) await lchown(join(clusterPath(path), name), account.uid, account.gid)
}

function otherVersion({ home, binaries }: Making, version: string): HoldfastError {
  return new HoldfastError(
    'data_folder_version',
    `The data in ${home.asked} was written by Postgres ${version}, but the embedded Postgres has version ${binaries.major}. ` +
      `Start it with the release of Holdfast that included Postgres ${version}, dump it with pg_dump and load the dump ` +
      'into a new folder. Or choose a new folder to start without data.',
    { details: { folder: home.asked, found: version, expected: binaries.major } },
  )
}
