import { liveSessions } from '../cell-database.sql.ts'
import { eventually } from '../deadline.ts'
import { haveEnded } from '../hit.ts'
import type { CellProcess } from '../processes.ts'
import type { Scenario } from '../scenario.ts'
import type { ScenarioContext } from '../scenario-context.ts'
import { leasesLeft, unclearedSessions, vacantLead } from './outage.sql.ts'
import { startSubmitterAndWorkers, waitMs } from './steps.ts'

/** A database that is unreachable for longer than a lease, first for all workers, then for one of them. Nothing has crashed. */
export const outage: Scenario = {
  name: 'outage',
  provokes: 'an outage longer than the lease: workers that come back, and the crashes that are taken back with them',
  owns: ['session.come_back', 'session.returned', 'crash.undue', 'crash.clear', 'session.clear'],
  rung: 'lease ran out',
  behind: { 'session.returned': 'session.come_back' },
  async run(context) {
    await startSubmitterAndWorkers(context)
    await context.submitMany('tireless', 4)
    const ids = context.idsOf('tireless')
    await untilHeld(context, ids)
    await cutOff(context, workers(context), (sessions) => hasRunOut(context, sessions))
    // if the machine stalls, the end of a session may not count as a crash: then there is none to take back
    for (let turns = 0; turns < 3 && !(await cutOneOff(context, ids)); turns++);
    await eventually(() => isBlameless(context, ids), {
      ms: waitMs,
      what: 'no job counted more crashes than processes had died',
    })
    await Promise.all(ids.map((id) => context.move('cancel', id, ['cancelled'])))
  },
}

function workers({ processes }: ScenarioContext): CellProcess[] {
  return processes.all().filter(({ role, isUp }) => role === 'worker' && isUp)
}

/** Waits until a worker holds one of these jobs. Returns the worker. */
function untilHeld(context: ScenarioContext, ids: string[]): Promise<CellProcess> {
  return eventually(
    async () => {
      const pids = new Set((await context.jobs()).filter(({ id }) => ids.includes(id)).map(({ pid }) => pid))
      return workers(context).find(({ member }) => pids.has(member.pid))
    },
    { ms: waitMs, what: 'a worker held a job' },
  )
}

async function cutOff(
  { ask }: ScenarioContext,
  processes: CellProcess[],
  isOver: (sessions: number[]) => Promise<boolean>,
): Promise<void> {
  const live = await Promise.all(processes.map(({ member }) => ask(liveSessions, { pid: member.pid })))
  const sessions = live.flat().map(({ id }) => id)
  for (const { proxy } of processes) proxy.stall()
  try {
    await eventually(() => isOver(sessions), { ms: waitMs, what: 'the outage had outlasted the leases' })
  } finally {
    for (const { proxy } of processes) proxy.unstall()
  }
}

async function hasRunOut({ ask }: ScenarioContext, sessions: number[]): Promise<boolean> {
  return (await ask(leasesLeft, { sessions })).length === 0 && (await ask(vacantLead, {})).length > 0
}

/**
 * Cuts off a worker that holds some of these jobs until they are taken from it. Returns whether that counted as a crash. If the cell's fault
 * holds another worker until this one takes over, the two would wait for each other, so the cut ends at once.
 */
async function cutOneOff(context: ScenarioContext, ids: string[]): Promise<boolean> {
  let isBlamed = false
  const process = await untilHeld(context, ids)
  await cutOff(context, [process], async (sessions) => {
    const { stricken } = context
    const isOver = (stricken && stricken !== process) || (await areReassigned(context, sessions))
    isBlamed = (await context.jobs()).some(({ id, crashes }) => ids.includes(id) && crashes > 0)
    return isOver
  })
  return isBlamed
}

/** Whether the sessions have ended and hold no jobs any more. */
async function areReassigned(context: ScenarioContext, sessions: number[]): Promise<boolean> {
  if (!(await haveEnded(context, sessions))) return false
  return (await context.jobs()).every(({ session_id }) => session_id === null || !sessions.includes(session_id))
}

async function isBlameless(context: ScenarioContext, ids: string[]): Promise<boolean> {
  if ((await context.ask(unclearedSessions, {})).length > 0) return false
  const jobs = (await context.jobs()).filter(({ id }) => ids.includes(id))
  return jobs.every(({ crashes }) => crashes <= context.processes.killed.size)
}
