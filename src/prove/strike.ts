import { isSuspect } from '../job/define.ts'
import { pause } from '../service/service.ts'
import type { CursorRow } from './bus.sql.ts'
import { livingSessions, type StandingRow, stillLiving } from './case.sql.ts'
import { type Case, isOver } from './case.ts'
import { eventually } from './deadline.ts'
import type { FaultName } from './faults.ts'
import { cellSettings } from './settings.ts'
import type { Sprung } from './trap.ts'

/** What a fault hits, as the database knew it at the moment at which the statement was held. */
export interface Hit {
  /** The jobs that should be seen to move again. */
  jobs: StandingRow[]
  /** The sessions of the process that is hit. */
  sessions: number[]
  heldJobs: StandingRow[]
  /** The cursors that the process reads from. */
  cursors: CursorRow[]
}

/** Looks at what a fault is about to hit: the jobs of the process and those that nobody holds; without any, all live ones. */
export async function lookAtHit(on: Case, { post }: Sprung): Promise<Hit> {
  try {
    const live = (await on.jobs()).filter((job) => !isOver(job) && !mayHaveToWait(job))
    const heldJobs = live.filter((job) => job.pid === post.member.pid)
    const orphans = live.filter((job) => job.session_id !== null && job.pid === null)
    const hit = [...heldJobs, ...orphans]
    const sessions = await on.ask(livingSessions, { pid: post.member.pid })
    // with nobody else there, it would be measured how long a process takes to start
    const hasPeer = on.crew.posts().some((one) => one !== post && one.isUp && one.role === post.role)
    const cursors = (await on.bus.cursors()).filter(({ pid }) => hasPeer && pid === post.member.pid)
    // whoever reads and holds no jobs is measured by how soon its cursors are read from
    const jobs = hit.length > 0 || cursors.length > 0 ? hit : live
    return { jobs, sessions: sessions.map(({ id }) => id), heldJobs, cursors }
  } catch (error) {
    if ((error as { code?: string }).code === '42P01') return { jobs: [], sessions: [], heldJobs: [], cursors: [] } // no schema yet
    throw error
  }
}

/** Whether a job becomes a suspect if it loses its worker: it then waits for a worker that is empty, and no bound says for how long. */
function mayHaveToWait({ crashes, crash_budget }: StandingRow): boolean {
  return isSuspect({ crashes: crashes + 1, crashBudget: crash_budget })
}

/** Whether a job has gone on since: claimed anew, advanced, or final. Merely queued again is not enough. */
export function hasMoved(before: StandingRow, now: StandingRow | undefined): boolean {
  return now !== undefined && (isOver(now) || now.attempt > before.attempt || now.stage > before.stage)
}

/** Whether a cursor is read from again: by another, or by the same one if the fault has left it its lease, which is longer by now. */
export function isReadAgain(fault: FaultName, before: CursorRow, now: CursorRow[]): boolean {
  const found = now.find((one) => one.group_name === before.group_name && one.partition === before.partition)
  if (!found) return true // its group is forgotten
  const isLonger = keepsLease(fault) && (found.lease_ms ?? 0) > (before.lease_ms ?? 0)
  return found.pid !== null && (found.term > before.term || isLonger)
}

function keepsLease(fault: FaultName): boolean {
  return ['cut-before', 'cut-after', 'restart', 'locked', 'thread-dies', 'deaf'].includes(fault)
}

const giveAwayMs = 15_000
const holdMs = 10_000
/** How long a job may take while the rows of all others are locked. */
const neighborMs = 15_000

/**
 * Carries out a fault. Resolves when it is over: for a stall or a freeze, when the process goes on; for a restart, when the server is
 * back. Answers the event of a webhook whose sender died with it.
 */
export async function strike(
  fault: FaultName,
  {
    on,
    sprung,
    hit,
    restart,
    reset,
  }: { on: Case; sprung: Sprung; hit: Hit; restart: () => Promise<void>; reset(): void },
): Promise<string | undefined> {
  const { post, link } = sprung
  switch (fault) {
    case 'kill-before':
    case 'kill-after':
      post.member.kill('SIGKILL')
      await post.member.exited
      return undefined
    case 'kill-post':
      return killInPost(on, sprung, reset)
    case 'cut-before':
    case 'cut-after':
      link.cut()
      return undefined
    case 'stall-before':
    case 'stall-after':
      post.proxy.stall()
      link.release()
      await givenAway(on, hit)
      post.proxy.unstall()
      return undefined
    case 'freeze':
      post.member.kill('SIGSTOP')
      link.release()
      await givenAway(on, hit)
      post.member.kill('SIGCONT')
      return undefined
    case 'thread-dies':
      await post.member.ask({ do: 'end-heartbeat' })
      link.release()
      return undefined
    case 'restart':
      await restart()
      return undefined
    case 'locked':
      await amongStrangers(on, link)
      reset()
      return undefined
    case 'deaf':
      for (const { proxy } of on.crew.posts()) proxy.deafen()
      link.release()
      return undefined
  }
}

/** Lets the statement go on while a stranger holds all rows that there are: a job that comes after that is nobody's business but its own. */
async function amongStrangers(on: Case, link: Sprung['link']): Promise<void> {
  const letGo = await on.hold()
  try {
    link.release()
    await on.untilFinal([await on.submit('short')], neighborMs)
  } finally {
    await letGo()
  }
}

/** Kills a sender at the moment at which the receiver has its webhook and has not answered. */
async function killInPost(on: Case, { post, link }: Sprung, reset: () => void): Promise<string> {
  const { receiver } = on.bus
  if (!receiver) throw new Error('Nobody receives webhooks in this scenario.')
  const { pid } = post.member
  const before = on.crew.posted.length
  receiver.hold()
  link.release()
  const isIts = (event: string) => on.crew.posted.slice(before).findLast((one) => one.event === event)?.pid === pid
  try {
    const what = 'the receiver had a webhook of the process that is to be killed'
    const event = await eventually(() => receiver.held().find(isIts), { ms: holdMs, what, everyMs: 5 })
    post.member.kill('SIGKILL')
    reset()
    await post.member.exited
    return event
  } finally {
    receiver.letGo()
  }
}

/** Waits until another process has sent the event once more, and it was received. */
export async function untilSentAgain(on: Case, event: string, killed: number, ms: number): Promise<void> {
  const { receiver } = on.bus
  const count = () => receiver?.receipts.filter(({ id }) => id === event).length ?? 0
  const before = count()
  const isSent = () => {
    const last = on.crew.posted.findLast((one) => one.event === event)
    return last !== undefined && last.pid !== killed && count() > before
  }
  await eventually(isSent, { ms, what: `another process had sent the event ${event} once more` })
}

/** Waits until a process that cannot be heard has lost its sessions, and others run what it held. */
async function givenAway(on: Case, hit: Hit): Promise<void> {
  if (hit.sessions.length === 0) return pause(cellSettings.leaseMs + cellSettings.leaderLeaseMs)
  await eventually(
    async () => {
      const now = await on.jobs()
      const isTaken = hit.heldJobs.every((job) =>
        hasMoved(
          job,
          now.find(({ id }) => id === job.id),
        ),
      )
      return isTaken && (await areEnded(on, hit.sessions))
    },
    { ms: giveAwayMs, what: 'the jobs of the process that cannot be heard had been given away' },
  )
}

/** Whether none of these sessions lives. */
export async function areEnded(on: Case, sessions: number[]): Promise<boolean> {
  const living = await on.ask(stillLiving, { ids: sessions })
  return living.length === 0
}
