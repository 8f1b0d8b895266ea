import type { Command } from 'commander'
import { addForget } from './events-forget.ts'
import { addGroups } from './events-groups.ts'
import { addListen } from './events-listen.ts'
import { addParked } from './events-parked.ts'
import { addReplay } from './events-replay.ts'
import { addTail } from './events-tail.ts'
import { addExamples } from './flags.ts'

/** Adds `holdfast events` with its commands. */
export function addEvents(program: Command): void {
  const events = program.command('events').description('Read the event log and manage the groups that consume it.')
  for (const add of [addGroups, addTail, addListen, addParked, addReplay, addForget]) add(events)
  addExamples(events, [
    ['holdfast events tail --follow', 'the latest events, then new ones'],
    ['holdfast events groups', 'who reads the log, and how far behind they are'],
    ['holdfast events replay orders --parked', 'replay events that failed'],
  ])
}
