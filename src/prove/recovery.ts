import type { FaultName } from './faults.ts'
import { findHit, untilMoved } from './hit.ts'
import type { CellProcess } from './processes.ts'
import type { ScenarioContext } from './scenario-context.ts'
import { startStopwatch } from './stopwatch.ts'
import { strike, untilSentAgain } from './strike.ts'
import type { HeldStatement } from './traps.ts'

/** How long it took until everything that a fault hit had moved again. */
export interface Recovery {
  tookMs: number
  /** For how much of that time the machine was too busy to run any process. */
  starvedMs: number
  /** Whether cursors were hit. */
  hasCursors: boolean
  /** Whether a remote worker was hit. */
  isRemote: boolean
}

/** Carries out a fault at a held statement, and measures the recovery from it. */
export async function strikeAndRecover(
  fault: FaultName,
  {
    context,
    held,
    restart,
  }: { context: ScenarioContext; held: HeldStatement<CellProcess>; restart: () => Promise<void> },
): Promise<Recovery> {
  context.stricken = held.sender
  const hit = await findHit(context, fault, held.sender)
  const watch = startStopwatch()
  const restartServer = async () => {
    await restart()
    watch.reset() // while the server is down, nothing can move
  }
  const struck = strike(fault, { context, held, hit, restart: restartServer, resetWatch: watch.reset })
  const sentAgain = struck.then((event) =>
    event === undefined ? undefined : untilSentAgain(context, event, held.sender.member.pid),
  )
  const recovered = Promise.all([untilMoved(context, fault, hit), sentAgain]).then(
    () => ({ ...watch.stop(), hasCursors: hit.cursors.length > 0, isRemote: held.sender.role === 'remote' }),
    (error) => {
      watch.stop()
      throw error
    },
  )
  recovered.catch(() => {}) // the caller reports it
  await struck.finally(() => {
    context.stricken = undefined
  })
  return recovered
}
