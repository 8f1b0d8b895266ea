import { livingSessions } from './case.sql.ts'
import type { Case } from './case.ts'
import type { Post } from './crew.ts'
import { eventually } from './deadline.ts'
import { manned, waitMs } from './manned.ts'
import { leasesLeft, unclearedSessions, vacantLead } from './outage.sql.ts'
import type { Scenario } from './scenario.ts'
import { areEnded } from './strike.ts'

/** A database out of reach for longer than a lease, first for every worker, then for one of them: nobody has crashed. */
export const outage: Scenario = {
  name: 'outage',
  provokes: 'an outage longer than the lease: workers that come back, and the crashes that are taken back with them',
  owns: ['session.come_back', 'session.returned', 'crash.undue', 'crash.clear', 'session.clear', 'attempt.extend'],
  behind: { 'session.returned': 'session.come_back' },
  afterOutage: ['attempt.extend'],
  async run(on) {
    await manned(on)
    await on.submitMany('tireless', 4)
    const ids = on.idsOf('tireless')
    await untilHeld(on, ids)
    await cutOff(workers(on), (sessions) => hasRunOut(on, sessions), on)
    const holder = await untilHeld(on, ids)
    await cutOff([holder], (sessions) => isGivenAway(on, sessions), on)
    await eventually(() => isBlameless(on, ids), {
      ms: waitMs,
      what: 'no job counted more crashes than processes had died',
    })
    await Promise.all(ids.map((id) => on.move('cancel', id, ['cancelled'])))
  },
}

function workers(on: Case): Post[] {
  return on.crew.posts().filter(({ role, isUp }) => role === 'worker' && isUp)
}

/** Waits until a worker holds one of these jobs, and answers which. */
function untilHeld(on: Case, ids: string[]): Promise<Post> {
  return eventually(
    async () => {
      const pids = new Set((await on.jobs()).filter(({ id }) => ids.includes(id)).map(({ pid }) => pid))
      return workers(on).find(({ member }) => pids.has(member.pid))
    },
    { ms: waitMs, what: 'a worker held a job' },
  )
}

async function cutOff(posts: Post[], isOver: (sessions: number[]) => Promise<boolean>, on: Case): Promise<void> {
  const living = await Promise.all(posts.map(({ member }) => on.ask(livingSessions, { pid: member.pid })))
  const sessions = living.flat().map(({ id }) => id)
  for (const { proxy } of posts) proxy.stall()
  try {
    await eventually(() => isOver(sessions), { ms: waitMs, what: 'the outage had outlasted the leases' })
  } finally {
    for (const { proxy } of posts) proxy.unstall()
  }
}

async function hasRunOut(on: Case, sessions: number[]): Promise<boolean> {
  return (await on.ask(leasesLeft, { sessions })).length === 0 && (await on.ask(vacantLead, {})).length > 0
}

/** Whether the sessions have ended, and nothing is left in their hands. */
async function isGivenAway(on: Case, sessions: number[]): Promise<boolean> {
  if (!(await areEnded(on, sessions))) return false
  return (await on.jobs()).every(({ session_id }) => session_id === null || !sessions.includes(session_id))
}

async function isBlameless(on: Case, ids: string[]): Promise<boolean> {
  if ((await on.ask(unclearedSessions, {})).length > 0) return false
  const jobs = (await on.jobs()).filter(({ id }) => ids.includes(id))
  return jobs.every(({ crashes }) => crashes <= on.crew.killed.size)
}
