import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** A process of this machine, and its command line. */
export interface Process {
  pid: number
  command: string
}

/** All processes that we can see, without zombies, which hold no resources and ignore signals. */
export function processes(): Process[] {
  return process.platform === 'linux' ? processesOfLinux() : processesOfPs()
}

/**
 * What distinguishes processes with the same pid: pids are reused, but the pair of pid and birth is not. Undefined if there is no such process; a
 * zombie counts as dead, because a parent that never reaps it would keep it forever.
 */
export function birthOf(pid: number): string | undefined {
  return process.platform === 'linux' ? birthOfLinux(pid) : birthOfPs(pid)
}

/** Identifies where our pids are valid. Another container or host has its own pids, which we can't see. */
export function pidSpace(): string {
  return `${hostname()} ${process.platform === 'linux' ? pidNamespace() : process.platform}`
}

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return 'unknown' // some sandboxes hide it
  }
}

// reads /proc instead of ps, which slim container images lack
function processesOfLinux(): Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), command: (readProc(`${name}/cmdline`) ?? '').replaceAll('\0', ' ').trim() }))
    .filter(({ command }) => command !== '')
}

function birthOfLinux(pid: number): string | undefined {
  const stat = readProc(`${pid}/stat`)
  if (!stat) return undefined
  // the second field is a name in parentheses that may itself contain spaces and parentheses, so count from the last one
  const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (state === 'Z' || state === 'X') return undefined
  return `${readProc('sys/kernel/random/boot_id')?.trim()} ${rest[18]}`
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(`/proc/${path}`, 'utf8')
  } catch {
    return undefined // gone between the listing and the reading
  }
}

function processesOfPs(): Process[] {
  return ps('-axww', '-o', 'pid=,command=')
    .split('\n')
    .map((line) => line.trim().split(/^(\d+)\s+/))
    .map(([, pid, command]) => ({ pid: Number(pid), command: command ?? '' }))
    .filter(({ pid, command }) => pid > 0 && command !== '<defunct>')
}

function birthOfPs(pid: number): string | undefined {
  const [, state, birth] = /^(\S+)\s+(.+)$/.exec(ps('-o', 'stat=,lstart=', '-p', String(pid)).trim()) ?? []
  return state?.startsWith('Z') ? undefined : birth
}

function ps(...args: string[]): string {
  try {
    return execFileSync('ps', args, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C', TZ: 'UTC' } })
  } catch {
    return '' // ps fails when it finds nothing
  }
}
