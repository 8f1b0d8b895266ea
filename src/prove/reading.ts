import { setTimeout as sleep } from 'node:timers/promises'
import type { Holdfast } from '../engine/engine.ts'
import type { EventHandler } from '../events/dispatch.ts'
import { announces } from '../job/machine.ts'
import { monotonicMs } from './kinds.ts'

/** The group that a proof reads for. */
export const proverGroup = 'prover'

/** What a handler of events did, told to the prover at once. */
export interface Handling {
  what: 'started' | 'ended'
  seq: number
  partition: number
  /** Names this one run of the handler: its process, and a number. */
  token: string
  atMs: number
  /** How it ended: for a signal, it may or may not have been handled. */
  outcome?: 'handled' | 'failed' | 'stopped'
}

/** How often an event may fail before it is parked. */
const most = 3
const handlingMs = 5
let runs = 0

/** Reads for the prover's group. An event of a staged job fails a few times; that of a doomed one is parked, and fails once more when it is replayed. */
export async function readForProver(hf: Holdfast, tell: (handling: Handling) => void): Promise<void> {
  await hf.events.subscribe(
    proverGroup,
    { types: 'job.*', items: true, from: 'beginning', partitions: 2, failures: most, backoffMs: 20, timeoutMs: 5_000 },
    seen(tell, async (event, ctx) => {
      await sleep(handlingMs)
      if (event.kind === 'staged' && event.type === announces('finish') && ctx.failures < most - 1)
        throw new Error('The first tries fail.')
      if (event.kind === 'doomed' && event.type === announces('fail') && !(await isMended(hf, event.seq)))
        throw new Error('Nobody can handle this event yet.')
    }),
  )
}

/** What a handler cannot do is mended some time after the event was parked: how often it failed is known to the database, whoever dies. */
async function isMended(hf: Holdfast, seq: number): Promise<boolean> {
  const parked = await hf.events.parked(proverGroup)
  return parked.some(({ event, failures }) => event.seq === seq && failures >= 2 * most)
}

/** Runs a handler of events under the prover's eyes. */
function seen(tell: (handling: Handling) => void, handler: EventHandler): EventHandler {
  return async (event, ctx) => {
    runs += 1
    const facts = { seq: event.seq, partition: ctx.partition, token: `${process.pid}-${runs}` }
    let isOver = false
    const end = (outcome: Handling['outcome']) => {
      if (!isOver) tell({ what: 'ended', ...facts, atMs: monotonicMs(), ...(outcome && { outcome }) })
      isOver = true
    }
    tell({ what: 'started', ...facts, atMs: monotonicMs() })
    // its signal is the promise: from here on, whatever the handler does is the handler's own fault
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
