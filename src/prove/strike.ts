import { pause } from '../service/service.ts'
import { eventually } from './deadline.ts'
import type { FaultName } from './faults.ts'
import { type Hit, haveEnded, haveMoved } from './hit.ts'
import type { CellProcess } from './processes.ts'
import type { ProxyConnection } from './proxy-connection.ts'
import type { ScenarioContext } from './scenario-context.ts'
import { cellSettings } from './settings.ts'
import type { HeldStatement } from './traps.ts'

/** What a fault strikes, and what it needs for that. */
export interface StrikeOptions {
  context: ScenarioContext
  held: HeldStatement<CellProcess>
  hit: Hit
  /** Restarts the server. */
  restart: () => Promise<void>
  /** Starts the measurement of the recovery over. */
  resetWatch: () => void
}

const reassignMs = 15_000
const postMs = 10_000
const resendMs = 20_000
/** How long a job may take while the rows of all others are locked. */
const neighborMs = 15_000

/**
 * Carries out a fault. Resolves when it is over: for a stall or a freeze, when the process continues; for a restart, when the server is
 * back. Returns the event of a webhook whose sender was killed while it sent it, if any.
 */
export async function strike(fault: FaultName, options: StrikeOptions): Promise<string | undefined> {
  const { context, held, hit } = options
  const { sender, connection } = held
  switch (fault) {
    case 'kill-before':
    case 'kill-after':
      await sender.member.kill('SIGKILL')
      return undefined
    case 'kill-post':
      return killDuringPost(options)
    case 'cut-before':
    case 'cut-after':
      connection.cut()
      return undefined
    case 'stall-before':
    case 'stall-after':
      sender.proxy.stall()
      connection.release()
      await untilReassigned(context, hit)
      sender.proxy.unstall()
      return undefined
    case 'freeze':
      await sender.member.kill('SIGSTOP')
      connection.release()
      await untilReassigned(context, hit)
      await sender.member.kill('SIGCONT')
      return undefined
    case 'thread-dies':
      await sender.member.ask({ do: 'end-heartbeat' })
      connection.release()
      return undefined
    case 'restart':
      await options.restart()
      return undefined
    case 'locked':
      await releaseWhileLocked(context, connection)
      options.resetWatch()
      return undefined
    case 'lost-notify':
      for (const { proxy } of context.processes.all()) proxy.discardNotifications()
      connection.release()
      return undefined
  }
}

/** Forwards the statement while another transaction has locked all rows. A job that is submitted after that must not have to wait. */
async function releaseWhileLocked(context: ScenarioContext, connection: ProxyConnection): Promise<void> {
  const unlock = await context.lockRows()
  try {
    connection.release()
    await context.untilFinal([await context.submit('short')], neighborMs)
  } finally {
    await unlock()
  }
}

/** Kills a sender after the receiver got its webhook and before it answers. Returns the webhook's event. */
async function killDuringPost({ context, held, resetWatch }: StrikeOptions): Promise<string> {
  const { receiver } = context.bus
  if (!receiver) throw new Error('This scenario has no webhook receiver.')
  const { member } = held.sender
  const { posted } = context.processes
  const before = posted.length
  const isIts = (event: string) => posted.slice(before).findLast((one) => one.event === event)?.pid === member.pid
  receiver.hold()
  held.connection.release()
  try {
    const what = 'the receiver had a webhook of the process that is to be killed'
    const event = await eventually(() => receiver.held().find(isIts), { ms: postMs, what, everyMs: 5 })
    const killed = member.kill('SIGKILL')
    resetWatch()
    await killed
    return event
  } finally {
    receiver.release()
  }
}

/** Waits until another process has sent the event again, and it was received. */
export async function untilSentAgain(context: ScenarioContext, event: string, killedPid: number): Promise<void> {
  const received = () => context.bus.receiver?.receipts.filter(({ id }) => id === event).length ?? 0
  const before = received()
  const isSent = () => {
    const last = context.processes.posted.findLast((one) => one.event === event)
    return last !== undefined && last.pid !== killedPid && received() > before
  }
  await eventually(isSent, { ms: resendMs, what: `another process had sent the event ${event} again` })
}

/** Waits until a process that is cut off has lost its sessions, and others run its jobs. */
async function untilReassigned(context: ScenarioContext, hit: Hit): Promise<void> {
  if (hit.sessions.length === 0) return pause(cellSettings.leaseMs + cellSettings.leaderLeaseMs)
  await eventually(async () => (await haveMoved(context, hit.heldJobs)) && (await haveEnded(context, hit.sessions)), {
    ms: reassignMs,
    what: 'the jobs of the process that is cut off were reassigned',
  })
}
