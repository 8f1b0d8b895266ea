import type { Verdict } from './link.ts'
import type { Random } from './random.ts'
import type { Sighting } from './trap.ts'

/** One way to break the system at a statement. */
export interface Fault {
  /** Whether it strikes before the server sees the statement, or once the server has committed and before anybody hears of it. */
  readonly at: Exclude<Verdict, 'pass'>
  readonly does: string
  /** The rung of the recovery ladder that bounds the recovery. */
  readonly rung: 'lock gone' | 'lease ran out' | 'claim ran out'
  /** Whether `--quick` tries it at every statement, or is drawn from these one for each that writes. */
  readonly quickly: 'always' | 'drawn'
  /** Whether handlers may overlap their successors: only where the process cannot run to abort them. */
  readonly mayOverlap: boolean
}

/** Every fault, in the order of the matrix. */
export const faults = {
  'kill-before': {
    at: 'before',
    does: 'kill -9 of the sender before the server sees the statement',
    rung: 'lock gone',
    quickly: 'drawn',
    mayOverlap: false,
  },
  'kill-after': {
    at: 'after',
    does: 'kill -9 of the sender after the commit, before the answer',
    rung: 'lock gone',
    quickly: 'always',
    mayOverlap: false,
  },
  'kill-post': {
    at: 'after',
    does: 'kill -9 of the sender while the receiver of a webhook holds its answer',
    rung: 'claim ran out',
    quickly: 'always',
    mayOverlap: false,
  },
  'cut-before': {
    at: 'before',
    does: 'the connection breaks before the server sees the statement',
    rung: 'lock gone',
    quickly: 'drawn',
    mayOverlap: false,
  },
  'cut-after': {
    at: 'after',
    does: 'the connection breaks after the commit, before the answer',
    rung: 'lock gone',
    quickly: 'drawn',
    mayOverlap: false,
  },
  'stall-before': {
    at: 'before',
    does: 'the network of the sender passes nothing until its jobs were given away; then the statement arrives',
    rung: 'lease ran out',
    quickly: 'drawn',
    mayOverlap: false,
  },
  'stall-after': {
    at: 'after',
    does: 'the same, but the statement is committed and its answer arrives late',
    rung: 'lease ran out',
    quickly: 'drawn',
    mayOverlap: false,
  },
  freeze: {
    at: 'before',
    does: 'SIGSTOP of the sender until its jobs were given away, then SIGCONT',
    rung: 'lease ran out',
    quickly: 'drawn',
    mayOverlap: true,
  },
  restart: {
    at: 'after',
    does: 'Postgres is killed and started again after the commit, before the answer',
    rung: 'lease ran out',
    quickly: 'drawn',
    mayOverlap: false,
  },
  locked: {
    at: 'before',
    does: 'a stranger locks every live job and barrier as the statement is sent, until a job submitted after that has ended',
    rung: 'lease ran out',
    quickly: 'drawn',
    mayOverlap: false,
  },
  'thread-dies': {
    at: 'before',
    does: 'the heartbeat thread of the sender is ended as the statement is sent; its process lives on',
    rung: 'lock gone',
    quickly: 'drawn',
    mayOverlap: false,
  },
  deaf: {
    at: 'before',
    does: 'all sockets that LISTEN become black holes as the statement is sent',
    rung: 'lease ran out',
    quickly: 'always',
    mayOverlap: false,
  },
} as const satisfies Record<string, Fault>

/** What is posted right after this statement. */
const postingStatement = 'delivery.claim'

/** The name of a fault. */
export type FaultName = keyof typeof faults

/** All faults, in the order of the matrix. */
export const faultNames = Object.keys(faults) as FaultName[]

/** What a fault is. */
export function faultOf(name: FaultName): Fault {
  return faults[name]
}

/** The faults that `--quick` tries at a statement, of those that make sense there: a few always, and one more where it writes, by chance. */
export function quickFaults(sensible: readonly FaultName[], statement: Sighting, random: Random): FaultName[] {
  const always = sensible.filter((fault) => faultOf(fault).quickly === 'always')
  const others = sensible.filter((fault) => faultOf(fault).quickly === 'drawn')
  return statement.isWrite ? [...always, ...random.shuffled(others).slice(0, 1)] : always
}

const leaseHolders = ['worker', 'reader', 'remote'] as const

/** Why a fault makes no sense at a statement; undefined where it does. */
export function senselessness(fault: FaultName, name: string, statement: Sighting): string | undefined {
  if (fault === 'kill-post' && name !== postingStatement) return 'It sends no webhook.'
  if (fault === 'deaf' && !statement.isAboutWaking) return 'It wakes nobody and does not listen.'
  if (fault === 'locked' && !statement.isWrite) return 'It changes no row, so no lock keeps it.'
  if (fault === 'thread-dies' && !statement.roles.has('worker')) return 'Its sender has no heartbeat thread.'
  const isLeaseless = !leaseHolders.some((role) => statement.roles.has(role))
  if (isLeaseless && (fault === 'freeze' || fault === 'stall-before' || fault === 'stall-after'))
    return 'Its sender holds no lease that could run out; it would only be late.'
  return undefined
}
