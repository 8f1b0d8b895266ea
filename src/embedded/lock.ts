// The lock of a data folder.
//
// Invariant: the live process that created the file lock.<n> with the highest n holds the folder. The highest file is never removed, only
// followed by a higher one, so the number only grows, and a stale lock is superseded, not deleted: if two processes find the same dead holder,
// both try to create the next file, and the file system lets only one of them. A process that creates its file late, after others have created
// higher ones, sees them and steps back.
//
// The holder is identified by its pid and birth, so that the lock ends with its process, and another process that gets the same pid does not
// inherit it. If we can't see the holder's pids (another container or host on the same volume), its file must be observed to be unchanged: a
// live holder touches it every second.

import { readdir, readFile, rm, stat, truncate, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { HoldfastError } from '../errors/errors.ts'
import { createOnce } from './atomic-file.ts'
import { birthOf, pidSpace } from './process-table.ts'

const beatMs = 1000
const stillMs = 5000

/** The process that holds a data folder. */
export interface Holder {
  pid: number
  birth: string
  space: string
}

/** A data folder that is ours until release, or until this process dies. */
export interface FolderLock {
  path: string
  release(): Promise<void>
}

/** Locks the folder. Throws data_folder_in_use, which names the holder. */
export async function lockFolder(home: string, folder: string): Promise<FolderLock> {
  for (;;) {
    const last = await lastNumber(home)
    const holder = await holderIn(lockPath(home, last))
    if (holder) throw inUse(folder, holder)
    const path = lockPath(home, last + 1)
    if (!(await createOnce(path, JSON.stringify(self())))) continue
    if ((await lastNumber(home)) === last + 1) return held(home, last + 1)
    await rm(path, { force: true })
  }
}

/** The live process that holds the folder, if there is one. */
export async function holderOf(home: string): Promise<Holder | undefined> {
  return holderIn(lockPath(home, await lastNumber(home)))
}

/** Whether a file name is that of a lock. */
export function isLockName(name: string): boolean {
  return /^lock\.\d+(\.draft-\w+)?$/.test(name)
}

/** Shows processes that can't see our pid that the holder is alive, as long as the lock exists. */
export function keepBeating(path: string): NodeJS.Timeout {
  const beat = () => utimes(path, new Date(), new Date()).catch(() => clearInterval(beating))
  const beating = setInterval(beat, beatMs).unref()
  return beating
}

async function held(home: string, number: number): Promise<FolderLock> {
  const path = lockPath(home, number)
  const older = (await readdir(home)).filter((name) => isNumbered(name) && numberOf(name) < number)
  await Promise.all(older.map((name) => rm(join(home, name), { force: true })))
  const beating = keepBeating(path)
  return {
    path,
    release: async () => {
      clearInterval(beating)
      await truncate(path).catch(() => {}) // if the folder was removed, so is the lock
    },
  }
}

async function holderIn(path: string): Promise<Holder | undefined> {
  const holder = parse(await readFile(path, 'utf8').catch(() => ''))
  if (!holder) return undefined
  const isAlive =
    holder.space === pidSpace() ? birthOf(holder.pid) === holder.birth : await isBeating(path, stillMs / beatMs)
  return isAlive ? holder : undefined
}

async function isBeating(path: string, beats: number): Promise<boolean> {
  const seenAt = await touchedAt(path)
  for (let step = 0; step < beats * 10; step += 1) {
    await sleep(beatMs / 10)
    if ((await touchedAt(path)) !== seenAt) return true
  }
  return false
}

async function touchedAt(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.mtimeMs ?? 0
}

async function lastNumber(home: string): Promise<number> {
  return Math.max(0, ...(await readdir(home)).filter(isNumbered).map(numberOf))
}

function lockPath(home: string, number: number): string {
  return join(home, `lock.${number}`)
}

// not a draft: its creator may be about to use it
function isNumbered(name: string): boolean {
  return /^lock\.\d+$/.test(name)
}

function numberOf(name: string): number {
  return Number(name.split('.')[1])
}

function self(): Holder {
  return { pid: process.pid, birth: birthOf(process.pid) ?? '', space: pidSpace() }
}

function parse(text: string): Holder | undefined {
  try {
    return JSON.parse(text) as Holder
  } catch {
    return undefined // empty: released, or never existed; incomplete: the machine crashed, and its processes with it
  }
}

function inUse(folder: string, holder: Holder): HoldfastError {
  const where = holder.space === pidSpace() ? '' : ` on ${holder.space.split(' ')[0]}`
  return new HoldfastError(
    'data_folder_in_use',
    `The data folder ${folder} is in use by process ${holder.pid}${where}. ` +
      'Stop that process, give this one another folder, or connect both to one Postgres by its URL.',
    { details: { folder, pid: holder.pid } },
  )
}
