import { setTimeout as sleep } from 'node:timers/promises'
import { HoldfastError } from '../errors/errors.ts'
import { type Process, processes } from './process-table.ts'

/** How long a fast shutdown of Postgres may take, which writes a checkpoint, before it is stopped without one. */
export const fastMs = 30_000
/** How long an immediate shutdown may take before Postgres is killed. Nothing is lost: the next start recovers. */
export const immediateMs = 5_000

/** The first arguments of all Postgres programs that we start. Their backends show the tag in their titles too. */
export function tagArguments(tag: string): string[] {
  return ['-c', `cluster_name=${tag}`]
}

interface Leftover extends Process {
  role: 'keeper' | 'initdb' | 'server' | 'backend'
}

/**
 * Ends all processes that an earlier run on this data folder left behind, and waits until the last is gone. The caller holds the folder's lock,
 * so their owner is dead. They are identified by the tag in their command lines, never by a pid from a file: that pid may belong to another
 * process by now.
 */
export async function clearLeftovers(tag: string, log: (line: string) => void = () => {}): Promise<void> {
  const startedAt = performance.now()
  const told = new Set<string>()
  for (;;) {
    const left = leftovers(tag)
    if (left.length === 0) return
    const ageMs = performance.now() - startedAt
    if (ageMs > fastMs + 2 * immediateMs) throw immortal(left)
    for (const each of left) tell(each, signalFor(each, left, ageMs), told, log)
    await sleep(20)
  }
}

/** The processes that carry the tag of a data folder. */
export function leftovers(tag: string): Leftover[] {
  return processes().flatMap((each) => {
    const role = roleOf(each.command, tag)
    return role ? [{ ...each, role }] : []
  })
}

function roleOf(command: string, tag: string): Leftover['role'] | undefined {
  const mark = tagArguments(tag).join(' ')
  if (command.startsWith(`postgres: ${tag}: `)) return 'backend'
  if (command.includes(`/keeper.js ${tag} `)) return 'keeper'
  if (command.includes(`/initdb ${mark} `)) return 'initdb'
  const isServer = command.includes(`/postgres ${mark} `)
  const isAlone = command.includes(`/postgres --single ${mark} `)
  return isServer || isAlone ? 'server' : undefined
}

function signalFor({ role }: Leftover, left: Leftover[], ageMs: number): NodeJS.Signals | undefined {
  if (role === 'keeper' || role === 'initdb' || ageMs > fastMs + immediateMs) return 'SIGKILL'
  if (role === 'server') return ageMs > fastMs ? 'SIGQUIT' : 'SIGINT'
  // a server ends its own backends; without a server they would end by themselves, but a busy one only when it is done
  return left.some((each) => each.role === 'server') ? undefined : 'SIGQUIT'
}

function tell(
  { pid, role }: Leftover,
  signal: NodeJS.Signals | undefined,
  told: Set<string>,
  log: (line: string) => void,
): void {
  if (!signal || told.has(`${pid} ${signal}`)) return
  told.add(`${pid} ${signal}`)
  log(`Ending the ${role} process ${pid} that an earlier run left behind (${signal}).`)
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function immortal(left: Leftover[]): HoldfastError {
  const pids = left.map(({ pid }) => pid).join(', ')
  return new HoldfastError(
    'embedded_start_failed',
    `An earlier Postgres of this data folder does not exit, even when killed (process ${pids}). ` +
      'It is probably waiting for a disk that does not respond. Check the disk, or restart the machine.',
  )
}
