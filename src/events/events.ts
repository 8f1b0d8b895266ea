import { HoldfastError } from '../errors/errors.ts'
import type { Actor } from '../job/scope.ts'
import { limitOf, placeOf, textOf } from '../job/validate-argument.ts'
import type { Runner } from '../postgres/store.ts'
import type { Service } from '../service/service.ts'
import type { EventPage } from './browse.ts'
import type { EventHandler } from './dispatch.ts'
import type { LogEvent } from './event.ts'
import { findGroup } from './group.sql.ts'
import { type Group, groupOf, type ParkedEvent, parkedOf } from './group.ts'
import { groupNameOf, ownGroupNameOf } from './group-name.ts'
import { forgetGroup, listGroups } from './groups.sql.ts'
import { knownEndOf, makeHorizon } from './horizon.ts'
import { listParked } from './parked.sql.ts'
import { type Replay, replay } from './replay.ts'
import { makeSubscriber, type SubscribeOptions, type SubscribeParts, type Subscription } from './subscribe.ts'
import { type EventPageOptions, pageOf, type WatchOptions, watch } from './watch.ts'

/** The event log. */
export interface Events {
  /** Reads events for a group: durably, at least once, in order per job, and each event in one process at a time. */
  subscribe(group: string, options: SubscribeOptions, handler: EventHandler): Promise<Subscription>
  /** Lists all groups, and how far each has read. */
  groups(): Promise<Group[]>
  /** Lists the events that a group has parked. */
  parked(group: string, options?: { after?: number; limit?: number }): Promise<ParkedEvent[]>
  /**
   * Replays parked events, or moves the group to another position in the log. Returns the number of events or partitions. With `by`, an
   * event records who did it.
   */
  replay(group: string, what: Replay, actor?: Actor): Promise<number>
  /** Removes a group; the log is no longer kept for it. With `by`, an event records who did it. */
  forget(group: string, actor?: Actor): Promise<void>
  /** The current end of the log; `isSafe` means that no earlier event can still appear. */
  end(): Promise<{ seq: number; isSafe: boolean }>
  /** Returns a page of the log, oldest first. It scans a bounded number of events, so a page may be short: continue until `next` is null. */
  page(options?: EventPageOptions): Promise<EventPage>
  /** Watches events without a group: in order, from now or from a position in the log. */
  watch(options?: WatchOptions): AsyncGenerator<LogEvent>
}

/** What the events of an engine need. */
export interface EventsParts extends SubscribeParts {
  /** Starts a service that the engine stops when it closes, and returns a function that stops it earlier. */
  begin: (service: Service) => Promise<() => Promise<void>>
}

/** Makes the events of an engine. */
export function makeEvents(parts: EventsParts): Events {
  const { store, wakeups, begin } = parts
  return {
    async subscribe(group, options, handler) {
      return { stop: await begin(await makeSubscriber(parts, ownGroupNameOf(group), options, handler)) }
    },
    groups: async () => (await store.run(listGroups, {})).map(groupOf),
    async parked(group, { after = 0, limit = 100 } = {}) {
      const page = { group: groupNameOf(group), after: placeOf('after', after), limit: limitOf(limit, 1000) }
      const rows = await store.run(listParked, page)
      if (rows.length === 0) await mustExist(store, group)
      return rows.map(parkedOf)
    },
    async replay(group, what, actor = {}) {
      const replayed = await replay(store, group, what, actor)
      if (replayed === 0) await mustExist(store, group)
      return replayed
    },
    async forget(group, actor = {}) {
      const gone = await store.contend(forgetGroup, { group: ownGroupNameOf(group), by: textOf('by', actor.by) })
      if (gone.length === 0) await mustExist(store, group)
    },
    end: () => knownEndOf(makeHorizon(store)),
    page: async (options = {}) => pageOf(store, options),
    watch: (options = {}) => watch(store, wakeups, options),
  }
}

/** Checked only after an operation found nothing: before it, the answer might change. */
async function mustExist(store: Runner, group: string): Promise<void> {
  if ((await store.run(findGroup, { group })).length > 0) return
  throw new HoldfastError('group_not_found', `There is no group ${JSON.stringify(group)}.`)
}
