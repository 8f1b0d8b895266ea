import { setTimeout as sleep } from 'node:timers/promises'
import type { Holdfast } from '../engine/engine.ts'
import type { EventHandler } from '../events/dispatch.ts'
import { announces } from '../job/machine.ts'
import { monotonicMs } from '../service/clock.ts'

/** The group of a proof's readers. */
export const proverGroup = 'prover'

/** What an event handler did, reported to the prover at once. */
export interface Handling {
  what: 'started' | 'ended'
  seq: number
  partition: number
  /** Identifies this run of the handler: its pid, and a number. */
  token: string
  atMs: number
  /** How it ended. A stopped one may or may not have handled the event. */
  outcome?: 'handled' | 'failed' | 'stopped'
}

/** How often an event may fail before it is parked. */
const mostFailures = 3
const handlingMs = 5
let runs = 0

/**
 * Reads for the prover's group. The finish of a staged job fails a few times; the failure of a doomed one is parked, and fails once more when
 * it is replayed.
 */
export async function readForProver(hf: Holdfast, report: (handling: Handling) => void): Promise<void> {
  await hf.events.subscribe(
    proverGroup,
    {
      types: 'job.*',
      items: true,
      from: 'beginning',
      partitions: 2,
      failures: mostFailures,
      backoffMs: 20,
      timeoutMs: 5_000,
    },
    observed(report, async (event, ctx) => {
      await sleep(handlingMs)
      if (event.kind === 'staged' && event.type === announces('finish') && ctx.failures < mostFailures - 1)
        throw new Error('The first tries fail.')
      if (event.kind === 'doomed' && event.type === announces('fail') && !(await isRepaired(hf, event.seq)))
        throw new Error('Nobody can handle this event yet.')
    }),
  )
}

/** The cause of the failure is gone some time after the event was parked. The database counts the failures, so no crash loses the count. */
async function isRepaired(hf: Holdfast, seq: number): Promise<boolean> {
  const parked = await hf.events.parked(proverGroup)
  return parked.some(({ event, failures }) => event.seq === seq && failures >= 2 * mostFailures)
}

/** Wraps an event handler so that the prover learns when it starts and when it ends or is aborted. */
function observed(report: (handling: Handling) => void, handler: EventHandler): EventHandler {
  return async (event, ctx) => {
    runs += 1
    const facts = { seq: event.seq, partition: ctx.partition, token: `${process.pid}-${runs}` }
    let isOver = false
    const end = (outcome: Handling['outcome']) => {
      if (!isOver) report({ what: 'ended', ...facts, atMs: monotonicMs(), ...(outcome && { outcome }) })
      isOver = true
    }
    report({ what: 'started', ...facts, atMs: monotonicMs() })
    // the product promises to abort in time; what a handler does after that is its own fault
    ctx.signal.addEventListener('abort', () => end('stopped'))
    try {
      await handler(event, ctx)
      end('handled')
    } catch (error) {
      end('failed')
      throw error
    }
  }
}
