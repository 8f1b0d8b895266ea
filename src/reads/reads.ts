import type { Config } from '../config/config.ts'
import type { State } from '../job/machine.ts'
import { idOf, limitOf, mustBeObject, placeOf, textOf } from '../job/validate-argument.ts'
import type { Store } from '../postgres/store.ts'
import {
  type AfterItem,
  type FanOutProgress,
  fanOutsOf,
  type Item,
  listItems,
  listStragglers,
  type Straggler,
} from './fan-outs.ts'
import { goneError } from './gone.ts'
import { getJob, jobTimeline, stateOf } from './job.sql.ts'
import { type Job, type JobSummary, jobOf, type TimelineEvent, timelineEventOf } from './job.ts'
import { type KindOptions, kindOf, kindsOf, nearKindsOf, type RegisteredKind } from './kinds.ts'
import type { ListOptions } from './list-filter.ts'
import { listOf, type Page, pageOf } from './page.ts'
import { type Queue, queuesOf } from './queues.ts'
import { type Recovery, recoveryOf } from './recovery.ts'
import { type Session, type SessionOptions, sessionsOf } from './sessions.ts'
import { type Throughput, throughputOf } from './throughput.ts'

/** Which part of a timeline. */
export interface TimelineOptions {
  /** Only events after this one: the last seq of the previous page. */
  after?: number
  /** Maximum number of events, at most 10,000. Default: 10,000. */
  limit?: number
}

/** The methods that only read. */
export interface Reads {
  /** Returns a job, or null if there is none. Throws job_gone if it was removed and its idempotency key is still known. */
  get(id: string, scope?: { tenant?: string }): Promise<Job | null>
  /** Returns only the state of a job, or null if there is none. Throws job_gone like `get`. */
  state(id: string, scope?: { tenant?: string }): Promise<State | null>
  /** Lists jobs, newest first. It scans until it has found enough or seen all, with bounded statements. For rare jobs among millions, use `page`. */
  list(options?: ListOptions): Promise<JobSummary[]>
  /** Returns a page of jobs, newest first. It scans a bounded number of rows, regardless of its depth and filter. */
  page(options?: ListOptions): Promise<Page>
  /** Lists the events of a job, oldest first. */
  timeline(id: string, options?: TimelineOptions): Promise<TimelineEvent[]>
  /** The progress of the fan-outs of a job, by stage. */
  fanOuts(id: string): Promise<FanOutProgress[]>
  /** Lists the items of a job, by stage and position. The last item of a page is the `after` of the next page. */
  items(id: string, options?: { state?: State; after?: AfterItem; limit?: number }): Promise<Item[]>
  /** Lists the items of a job that have been running longest. */
  stragglers(id: string, options?: { limit?: number }): Promise<Straggler[]>
  /** Lists registered kinds: those for all tenants first, then by tenant and name. */
  kinds(options?: KindOptions): Promise<RegisteredKind[]>
  /** Returns the kind with this name that applies to the jobs of a tenant (default: `default`); null if there is none. */
  kind(name: string, scope?: { tenant?: string }): Promise<RegisteredKind | null>
  /** Lists up to 40 names of kinds close to an unknown name, as far as the tenant may see them. */
  nearKinds(name: string, scope?: { tenant?: string }): Promise<string[]>
  /** Lists queues that contain jobs, are served, or were ever paused. With a tenant, only its jobs are counted. */
  queues(options?: { tenant?: string }): Promise<Queue[]>
  /** Lists worker sessions, newest first: live ones, or those that have ended. */
  sessions(options?: SessionOptions): Promise<Session[]>
  /** Describes recovery: the leader, the bound within which lost jobs run again, and recent revivals and refusals. */
  recovery(): Promise<Recovery>
  /** Counts what has happened since an earlier call; without one, it returns only the position from which the next call counts. */
  throughput(since?: Throughput): Promise<Throughput>
}

/** Makes the reads of an engine. */
export function makeReads({ store, config }: { store: Store; config: Config }): Reads {
  return {
    async get(id, { tenant } = {}) {
      const [row] = await store.run(getJob, { id: idOf(id), tenant: textOf('tenant', tenant) })
      return row ? jobOf(row) : nullUnlessGone(store, id, tenant)
    },
    async state(id, { tenant } = {}) {
      const [row] = await store.run(stateOf, { ids: [idOf(id)], tenant: textOf('tenant', tenant) })
      return row ? (row.state as State) : nullUnlessGone(store, id, tenant)
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
    throughput: (since) => throughputOf(store, since),
  }
}

async function nullUnlessGone(store: Store, id: string, tenant: string | undefined): Promise<null> {
  const gone = await goneError(store, idOf(id), textOf('tenant', tenant))
  if (gone) throw gone
  return null
}
