import type { Command } from 'commander'
import type { Holdfast } from '../engine/engine.ts'
import type { WatchOptions } from '../engine/events.ts'
import { messageOf } from '../errors/errors.ts'
import type { LogEvent } from '../events/event.ts'
import { isConnectionError } from '../store/connection.ts'
import { knownStages, makeLines } from './event-lines.ts'
import { addTypes, typesIn } from './flags.ts'
import { pickJob } from './pick-job.ts'
import { complain, padded, paint, print } from './terminal.ts'

/** The flags that choose events. */
export interface WhichFlags {
  types?: string
  tenant?: string
  job?: string
  items?: true
  json?: true
}

/** Gives a command the flags that choose events. */
export function addWhich(command: Command): Command {
  return addTypes(command, 'Only events of these types:')
    .option('--tenant <tenant>', 'Only events of this tenant.')
    .option('--job <id>', 'Only events of this job; its last 8 letters will do.')
    .option('--items', 'Those of the items of fan-outs too.')
}

/** The events that the flags choose. A type that does not exist is refused here. */
export async function whichOf(
  hf: Holdfast,
  { types, tenant, job, items }: WhichFlags,
): Promise<Pick<WatchOptions, 'types' | 'tenant' | 'job' | 'items'>> {
  const which = {
    ...typesIn({ ...(types !== undefined && { types }) }),
    ...(tenant !== undefined && { tenant }),
    ...(job !== undefined && { job: await pickJob(hf, job) }),
    ...(items && { items }),
  }
  hf.events.watch(which)
  return which
}

/** A database that is away is told of and waited for; anything else ends the command. */
export function onWatchTrouble(error: unknown): void {
  if (!isConnectionError(error)) throw error
  complain(`The database is out of reach, trying again: ${messageOf(error)}`)
}

const seqCells = 6

/** Prints events, each on a line of its own, and answers how many. */
export async function showEvents(
  hf: Holdfast,
  { json }: { json?: true },
  events: AsyncIterable<LogEvent>,
): Promise<number> {
  const lines = makeLines(knownStages(hf))
  let count = 0
  for await (const event of events) {
    count += 1
    if (json) print(JSON.stringify(event))
    if (!json) print(`${paint('dim', padded(String(event.seq), seqCells))}  ${await lines.of(event)}`)
  }
  return count
}
