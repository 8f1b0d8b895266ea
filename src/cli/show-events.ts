import type { Command } from 'commander'
import type { Holdfast } from '../engine/engine.ts'
import { messageOf } from '../errors/errors.ts'
import type { LogEvent } from '../events/event.ts'
import type { WatchOptions } from '../events/watch.ts'
import { isConnectionError } from '../postgres/connection.ts'
import { knownStages, makeLines } from './event-lines.ts'
import { addTypes, typesIn } from './flags.ts'
import { pickJob } from './pick-job.ts'
import { complain, padded, paint, print } from './terminal.ts'

/** The flags that select events. */
export interface WhichFlags {
  types?: string
  tenant?: string
  job?: string
  items?: true
  json?: true
}

/** Adds the flags that select events. */
export function addWhich(command: Command): Command {
  return addTypes(command, 'Only these event types:')
    .option('--tenant <tenant>', 'Only this tenant.')
    .option('--job <id>', 'Only this job: its id, or the last 8 characters.')
    .option('--items', 'Include events of fan-out items.')
}

/** The events that the flags select. Throws if an event type does not exist. */
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

/** Reports and waits out a lost connection to the database; anything else ends the command. */
export function onWatchError(error: unknown): void {
  if (!isConnectionError(error)) throw error
  complain(`The database is unreachable, retrying: ${messageOf(error)}`)
}

const seqCells = 6

/** Prints events, one per line, and returns how many there were. */
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
