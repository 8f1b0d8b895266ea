import type { Moment } from './proxy-connection.ts'
import type { Random } from './random.ts'
import type { Sighting } from './sightings.ts'

/** One way to break the system at a statement. */
export interface Fault {
  /** Whether it strikes before the server receives the statement, or after the commit and before the response arrives. */
  readonly at: Moment
  readonly does: string
  /** The rung of the recovery ladder that bounds the recovery. */
  readonly rung: 'lock gone' | 'lease ran out' | 'claim ran out'
  /** Whether `--quick` tries it at every statement, or draws one of these for each statement that writes. */
  readonly quickly: 'always' | 'drawn'
  /** Whether handlers may overlap their successors: only if the process cannot run to abort them. */
  readonly mayOverlap: boolean
}

/** Every fault, in the order of the matrix. */
export const faults = {
  'kill-before': {
    at: 'before',
    does: 'kills the sender (kill -9) before the server sees the statement',
    rung: 'lock gone',
    quickly: 'drawn',
    mayOverlap: false,
  },
  'kill-after': {
    at: 'after',
    does: 'kills the sender (kill -9) after the commit, before the response',
    rung: 'lock gone',
    quickly: 'always',
    mayOverlap: false,
  },
  'kill-post': {
    at: 'after',
    does: 'kills the sender (kill -9) while the webhook receiver delays its response',
    rung: 'claim ran out',
    quickly: 'always',
    mayOverlap: false,
  },
  'cut-before': {
    at: 'before',
    does: 'breaks the connection before the server sees the statement',
    rung: 'lock gone',
    quickly: 'drawn',
    mayOverlap: false,
  },
  'cut-after': {
    at: 'after',
    does: 'breaks the connection after the commit, before the response',
    rung: 'lock gone',
    quickly: 'drawn',
    mayOverlap: false,
  },
  'stall-before': {
    at: 'before',
    does: 'blocks the network of the sender until its jobs are reassigned; then the statement arrives',
    rung: 'lease ran out',
    quickly: 'drawn',
    mayOverlap: false,
  },
  'stall-after': {
    at: 'after',
    does: 'the same, but the statement commits and its response arrives late',
    rung: 'lease ran out',
    quickly: 'drawn',
    mayOverlap: false,
  },
  freeze: {
    at: 'before',
    does: 'freezes the sender (SIGSTOP) until its jobs are reassigned, then resumes it (SIGCONT)',
    rung: 'lease ran out',
    quickly: 'drawn',
    mayOverlap: true,
  },
  restart: {
    at: 'after',
    does: 'kills and restarts Postgres after the commit, before the response',
    rung: 'lease ran out',
    quickly: 'drawn',
    mayOverlap: false,
  },
  locked: {
    at: 'before',
    does: 'another transaction locks every live job and barrier when the statement is sent, until a job submitted after that has ended',
    rung: 'lease ran out',
    quickly: 'drawn',
    mayOverlap: false,
  },
  'thread-dies': {
    at: 'before',
    does: 'terminates the heartbeat thread of the sender when the statement is sent; its process stays alive',
    rung: 'lock gone',
    quickly: 'drawn',
    mayOverlap: false,
  },
  'lost-notify': {
    at: 'before',
    does: 'drops all notifications when the statement is sent: LISTEN connections become black holes',
    rung: 'lease ran out',
    quickly: 'always',
    mayOverlap: false,
  },
} as const satisfies Record<string, Fault>

/** The statement after which a webhook is posted. */
const postingStatement = 'delivery.claim'

/** The name of a fault. */
export type FaultName = keyof typeof faults

/** All faults, in the order of the matrix. */
export const faultNames = Object.keys(faults) as FaultName[]

/** The definition of a fault. */
export function faultOf(name: FaultName): Fault {
  return faults[name]
}

/** The faults that `--quick` tries at a statement, of those that apply there: a few always, and a random one if it writes. */
export function quickFaults(applicable: readonly FaultName[], statement: Sighting, random: Random): FaultName[] {
  const always = applicable.filter((fault) => faultOf(fault).quickly === 'always')
  const others = applicable.filter((fault) => faultOf(fault).quickly === 'drawn')
  return statement.isWrite ? [...always, ...random.shuffled(others).slice(0, 1)] : always
}

const leaseHolders = ['worker', 'reader', 'remote'] as const

/** Why a fault does not apply to a statement; undefined if it does. */
export function whyNotApplicable(
  fault: FaultName,
  name: string,
  { sighting: statement, isFull }: { sighting: Sighting; isFull: boolean },
): string | undefined {
  if (fault === 'kill-post' && name !== postingStatement) return 'It sends no webhook.'
  if (fault === 'lost-notify' && !statement.isAboutWaking) return 'It neither wakes workers nor listens.'
  if (fault === 'locked' && !statement.isWrite) return 'It changes no row, so no lock can block it.'
  if (fault === 'locked' && [...statement.roles].every((role) => role === 'migrator'))
    return 'It runs before there are rows that anyone could lock.'
  if (fault === 'locked' && isFull)
    return 'Every worker is busy in this scenario, so no other job could show that it runs.'
  if (fault === 'thread-dies' && !statement.roles.has('worker')) return 'Its sender has no heartbeat thread.'
  const isLeaseless = !leaseHolders.some((role) => statement.roles.has(role))
  if (isLeaseless && (fault === 'freeze' || fault === 'stall-before' || fault === 'stall-after'))
    return 'Its sender holds no lease that could run out; the statement would only be late.'
  return undefined
}
