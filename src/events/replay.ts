import type { Actor } from '../job/scope.ts'
import { mustBeObject, placeOf, refuse, textOf, timeOf } from '../job/validate-argument.ts'
import type { Runner, Store } from '../postgres/store.ts'
import { groupNameOf, ownGroupNameOf } from './group-name.ts'
import { rewindGroup } from './groups.sql.ts'
import { endOf, makeHorizon } from './horizon.ts'
import { placeAtTime } from './log.sql.ts'
import { replayParked } from './parked.sql.ts'

/** What to replay: parked events (one or all), or everything from a position in the log onward. */
export type Replay = { parked: number | 'all' } | { from: 'beginning' | 'now' | Date | number }

/** Replays events for a group. Returns the number of parked events or partitions, which is 0 if the group does not exist. */
export async function replay(store: Store, group: string, what: Replay, actor: Actor): Promise<number> {
  mustBeObject('what to replay', what)
  const by = textOf('by', actor.by)
  if ('parked' in what) {
    const seq = what.parked === 'all' ? null : placeOf('parked', what.parked)
    return (await store.contend(replayParked, { group: groupNameOf(group), seq, by })).length
  }
  const name = ownGroupNameOf(group)
  return (await store.contend(rewindGroup, { group: name, seq: await startOf(store, what.from), by })).length
}

/** The position in the log to start from. */
async function startOf(store: Runner, from: 'beginning' | 'now' | Date | number): Promise<number> {
  if (from === 'beginning') return 0
  const end = await endOf(makeHorizon(store))
  if (from === 'now') return end
  if (typeof from === 'number' && Number.isSafeInteger(from) && from >= 0 && from <= end) return from
  if (!(from instanceof Date))
    return refuse(`from must be 'beginning', 'now', a Date or a log position of at most ${end}`, from)
  const [found] = await store.run(placeAtTime, { at: timeOf('from', from), upTo: end })
  return found?.seq ?? end
}
