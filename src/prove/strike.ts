import { pause } from '../service/service.ts'
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
}

/** Looks at what a fault is about to hit: the jobs of the process and those that nobody holds; without any, all live ones. */
export async function lookAtHit(on: Case, { post }: Sprung): Promise<Hit> {
  try {
    const live = (await on.jobs()).filter((job) => !isOver(job))
    const heldJobs = live.filter((job) => job.pid === post.member.pid)
    const orphans = live.filter((job) => job.session_id !== null && job.pid === null)
    const hit = [...heldJobs, ...orphans]
    const sessions = await on.ask(livingSessions, { pid: post.member.pid })
    return { jobs: hit.length > 0 ? hit : live, sessions: sessions.map(({ id }) => id), heldJobs }
  } catch (error) {
    if ((error as { code?: string }).code === '42P01') return { jobs: [], sessions: [], heldJobs: [] } // no schema yet
    throw error
  }
}

/** Whether a job has gone on since: claimed anew, advanced, or final. Merely queued again is not enough. */
export function hasMoved(before: StandingRow, now: StandingRow | undefined): boolean {
  return now !== undefined && (isOver(now) || now.attempt > before.attempt || now.stage > before.stage)
}

const giveAwayMs = 15_000

/** Carries out a fault. Resolves when it is over: for a stall or a freeze, when the process goes on; for a restart, when the server is back. */
export async function strike(
  fault: FaultName,
  { on, sprung, hit, restart }: { on: Case; sprung: Sprung; hit: Hit; restart: () => Promise<void> },
): Promise<void> {
  const { post, link } = sprung
  switch (fault) {
    case 'kill-before':
    case 'kill-after':
      post.member.kill('SIGKILL')
      await post.member.exited
      return
    case 'cut-before':
    case 'cut-after':
      return link.cut()
    case 'stall-before':
    case 'stall-after':
      post.proxy.stall()
      link.release()
      await givenAway(on, hit)
      return post.proxy.unstall()
    case 'freeze':
      post.member.kill('SIGSTOP')
      link.release()
      await givenAway(on, hit)
      return post.member.kill('SIGCONT')
    case 'restart':
      return restart()
    case 'deaf':
      for (const { proxy } of on.crew.posts()) proxy.deafen()
      return link.release()
  }
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

async function areEnded(on: Case, sessions: number[]): Promise<boolean> {
  const living = await on.ask(stillLiving, { ids: sessions })
  return living.length === 0
}
