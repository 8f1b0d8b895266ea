import type { Config } from '../config/config.ts'
import type { State } from '../job/machine.ts'
import type { Store } from '../store/store.ts'
import {
  type AfterItem,
  type FanOutProgress,
  fanOutsOf,
  type Item,
  listItems,
  listStragglers,
  type Straggler,
} from './fan-outs.ts'
import { idOf, type ListOptions, limitOf, mustBeObject, placeOf, textOf } from './given.ts'
import { type Job, type JobSummary, jobOf, type TimelineEvent, timelineEventOf } from './job.ts'
import { type KindOptions, kindOf, kindsOf, nearKindsOf, type RegisteredKind } from './kinds.ts'
import { listOf, type Page, pageOf } from './page.ts'
import { type Pulse, pulseOf } from './pulse.ts'
import { type Queue, queuesOf } from './queues.ts'
import { getJob, jobTimeline, stateOf } from './read.sql.ts'
import { type Recovery, recoveryOf } from './recovery.ts'
import { type Session, type SessionOptions, sessionsOf } from './sessions.ts'

/** Which part of a timeline. */
export interface TimelineOptions {
  /** Only events behind this one: the last seq of the page before. */
  after?: number
  /** Default and most: 10,000. */
  limit?: number
}

/** What can be asked of Holdfast; none of it changes anything. */
export interface Reads {
  /** The job, or null if there is none with that id. */
  get(id: string, scope?: { tenant?: string }): Promise<Job | null>
  /** Where a job stands, and nothing more; null if there is none with that id. */
  state(id: string, scope?: { tenant?: string }): Promise<State | null>
  /** Jobs, the latest first: looks until it has found so many or seen all, by statements that are bounded each. For what is rare among millions, take pages. */
  list(options?: ListOptions): Promise<JobSummary[]>
  /** A page of jobs, which looks at a bounded number of rows however deep it is and whatever it asks for. */
  page(options?: ListOptions): Promise<Page>
  /** What happened to a job, oldest first. */
  timeline(id: string, options?: TimelineOptions): Promise<TimelineEvent[]>
  /** How far the fan-outs of a job are, by stage. */
  fanOuts(id: string): Promise<FanOutProgress[]>
  /** The items of a job, by stage and position; the last one of a page is the `after` of the next. */
  items(id: string, options?: { state?: State; after?: AfterItem; limit?: number }): Promise<Item[]>
  /** The items of a job that have been at work the longest. */
  stragglers(id: string, options?: { limit?: number }): Promise<Straggler[]>
  /** The kinds that workers have registered: those for all tenants first, then by tenant and name. */
  kinds(options?: KindOptions): Promise<RegisteredKind[]>
  /** The kind of that name that applies to the jobs of a tenant, by default `default`; null if there is none. */
  kind(name: string, scope?: { tenant?: string }): Promise<RegisteredKind | null>
  /** Up to 40 names of kinds around one that nobody knows, as far as that tenant may know them. */
  nearKinds(name: string, scope?: { tenant?: string }): Promise<string[]>
  /** The queues that hold jobs, are served, or were ever paused. With a tenant, only its jobs are counted. */
  queues(options?: { tenant?: string }): Promise<Queue[]>
  /** The worker processes, the latest first: those that live, or those that have ended. */
  sessions(options?: SessionOptions): Promise<Session[]>
  /** Who runs the clockwork, within what bound lost jobs move again, and what was revived or refused lately. */
  recovery(): Promise<Recovery>
  /** How much has happened since an earlier pulse; without one, only the place from which the next one counts. */
  pulse(since?: Pulse): Promise<Pulse>
}

/** Makes the reads of an engine. */
export function makeReads({ store, config }: { store: Store; config: Config }): Reads {
  return {
    async get(id, { tenant } = {}) {
      const [row] = await store.run(getJob, { id: idOf(id), tenant: textOf('tenant', tenant) })
      return row ? jobOf(row) : null
    },
    async state(id, { tenant } = {}) {
      const [row] = await store.run(stateOf, { ids: [idOf(id)], tenant: textOf('tenant', tenant) })
      return row ? (row.state as State) : null
    },
    list: async (options = {}) => listOf(store, options),
    page: async (options = {}) => pageOf(store, options),
    async timeline(id, options = {}) {
      mustBeObject('options of timeline', options)
      const { after = 0, limit = 10_000 } = options
      const page = { id: idOf(id), after: placeOf('after', after), limit: limitOf(limit, 10_000) }
      return (await store.run(jobTimeline, page)).map(timelineEventOf)
    },
    fanOuts: (id) => fanOutsOf(store, idOf(id)),
    items: (id, { limit = 100, ...options } = {}) =>
      listItems(store, idOf(id), { limit: Math.min(1000, limit), ...options }),
    stragglers: (id, { limit = 10 } = {}) => listStragglers(store, idOf(id), Math.min(1000, limit)),
    kinds: async (options = {}) => kindsOf(store, options),
    kind: async (name, { tenant } = {}) => kindOf(store, name, tenant),
    nearKinds: async (name, { tenant } = {}) => nearKindsOf(store, name, tenant),
    queues: async (options = {}) => queuesOf(store, options),
    sessions: async (options = {}) => sessionsOf(store, options),
    recovery: () => recoveryOf(store, config),
    pulse: (since) => pulseOf(store, since),
  }
}
