import { isSuspect } from '../job/define.ts'
import type { CursorRow } from './bus.sql.ts'
import { type JobRow, liveSessions, stillLive } from './cell-database.sql.ts'
import { eventually } from './deadline.ts'
import type { FaultName } from './faults.ts'
import { outlastingKinds } from './kinds.ts'
import type { CellProcess } from './processes.ts'
import { isOver, type ScenarioContext } from './scenario-context.ts'

/** What a fault hits, as the database saw it when the statement was held. */
export interface Hit {
  /** The jobs that have to move again. */
  jobs: JobRow[]
  /** The sessions of the process that is hit. */
  sessions: number[]
  /** The jobs that the process holds. */
  heldJobs: JobRow[]
  /** The cursors that the process reads from. */
  cursors: CursorRow[]
}

const recoveryMs = 20_000
const noSchema = '42P01'

/** Finds what a fault is about to hit: the jobs of the process and those that nobody holds; without any, all live ones. */
export async function findHit(context: ScenarioContext, fault: FaultName, process: CellProcess): Promise<Hit> {
  try {
    const { pid } = process.member
    const live = (await context.jobs()).filter((job) => !isOver(job) && !mayHaveToWait(job) && !isRunning(fault, job))
    const heldJobs = live.filter((job) => job.pid === pid)
    const orphans = live.filter((job) => job.session_id !== null && job.pid === null)
    const affected = [...heldJobs, ...orphans]
    const sessions = await context.ask(liveSessions, { pid })
    const cursors = (await context.bus.cursors()).filter((cursor) => cursor.pid === pid && hasPeer(context, process))
    // a reader that holds no jobs is measured by how soon its cursors are read from
    const jobs = affected.length > 0 || cursors.length > 0 ? affected : live
    return { jobs, sessions: sessions.map(({ id }) => id), heldJobs, cursors }
  } catch (error) {
    if ((error as { code?: string }).code !== noSchema) throw error
    return { jobs: [], sessions: [], heldJobs: [], cursors: [] }
  }
}

/** Whether another process can take over. Without one, the recovery would measure how long a process takes to start. */
function hasPeer({ processes }: ScenarioContext, process: CellProcess): boolean {
  return processes.all().some((other) => other !== process && other.isUp && other.role === process.role)
}

/** Whether a job becomes a suspect if it loses its worker: it then waits for an empty worker, and no bound says for how long. */
function mayHaveToWait({ crashes, crash_budget }: JobRow): boolean {
  return isSuspect({ crashes: crashes + 1, crashBudget: crash_budget })
}

/** Whether a long job keeps running because the fault leaves its worker the lease: it moves when its handler ends, and no bound covers that. */
function isRunning(fault: FaultName, { kind, pid }: JobRow): boolean {
  return keepsLease(fault) && pid !== null && outlastingKinds.includes(kind)
}

/** Waits until every job and cursor that was hit has moved again. */
export async function untilMoved(context: ScenarioContext, fault: FaultName, hit: Hit): Promise<void> {
  await Promise.all([untilJobsMoved(context, hit), untilReadAgain(context, fault, hit)])
}

async function untilJobsMoved(context: ScenarioContext, { jobs }: Hit): Promise<void> {
  if (jobs.length === 0) return
  const what = `these jobs had moved again: ${jobs.map(({ id, kind }) => `${id} (${kind})`).join(', ')}`
  await eventually(() => haveMoved(context, jobs), { ms: recoveryMs, what })
}

async function untilReadAgain(context: ScenarioContext, fault: FaultName, { cursors }: Hit): Promise<void> {
  if (cursors.length === 0) return
  await eventually(
    async () => {
      const now = await context.bus.cursors()
      return cursors.every((before) => isReadAgain(fault, before, now))
    },
    { ms: recoveryMs, what: 'the cursors that were hit were read from again' },
  )
}

/** Whether all of these jobs have gone on since: claimed again, advanced, or final. Being queued again is not enough. */
export async function haveMoved(context: ScenarioContext, jobs: JobRow[]): Promise<boolean> {
  const now = new Map((await context.jobs()).map((job) => [job.id, job]))
  return jobs.every((before) => hasMoved(before, now.get(before.id)))
}

function hasMoved(before: JobRow, now: JobRow | undefined): boolean {
  return now !== undefined && (isOver(now) || now.attempt > before.attempt || now.stage > before.stage)
}

/** Whether a cursor is read from again: by another reader, or by the same one if it kept its lease and has renewed it. */
function isReadAgain(fault: FaultName, before: CursorRow, now: CursorRow[]): boolean {
  const found = now.find((one) => one.group_name === before.group_name && one.partition === before.partition)
  if (!found) return true // its group is forgotten
  const isRenewed = keepsLease(fault) && (found.lease_ms ?? 0) > (before.lease_ms ?? 0)
  return found.pid !== null && (found.term > before.term || isRenewed)
}

function keepsLease(fault: FaultName): boolean {
  return ['cut-before', 'cut-after', 'restart', 'locked', 'thread-dies', 'lost-notify'].includes(fault)
}

/** Whether all of these sessions have ended. */
export async function haveEnded(context: ScenarioContext, sessions: number[]): Promise<boolean> {
  return (await context.ask(stillLive, { ids: sessions })).length === 0
}
