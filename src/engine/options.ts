import type { BulkListOptions, BulkOperations } from '../bulk/bulk.ts'
import type { FailureOptions } from '../bulk/failures.ts'
import type { BulkQuestion, NewBulkOperation } from '../bulk/request.ts'
import type { Known } from '../errors/options.ts'
import { refuseUnknown } from '../errors/options.ts'
import type { Events } from '../events/events.ts'
import type { SubscribeOptions } from '../events/subscribe.ts'
import type { EventPageOptions, WatchOptions } from '../events/watch.ts'
import { ofTiming } from '../job/known-options.ts'
import type { Actor, TenantScope } from '../job/scope.ts'
import type { Unique } from '../job/unique.ts'
import type { KeyListOptions, KeyMaker, Keys, NewKey } from '../keys/keys.ts'
import type { KindOptions } from '../reads/kinds.ts'
import type { ListOptions } from '../reads/list-filter.ts'
import type { PauseOptions } from '../reads/queues.ts'
import type { TimelineOptions } from '../reads/reads.ts'
import type { SessionOptions } from '../reads/sessions.ts'
import type { BackfillRange } from '../schedule/backfill.ts'
import type { NewSchedule, ScheduleListOptions, SlotOptions } from '../schedule/schedule.ts'
import type { Schedules } from '../schedule/schedules.ts'
import type { JobWebhook, SubmitOptions } from '../submit/prepare.ts'
import type { DeliveryOptions } from '../webhooks/deliveries.ts'
import type { NewEndpoint } from '../webhooks/endpoints.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import type { Barriers, OpenBarrier } from './barriers.ts'
import type { Holdfast } from './engine.ts'
import type { SubmitHow } from './submissions.ts'
import type { WorkOptions } from './work.ts'

/** The options of methods: by method, then by the position of the argument. A nested table is for an option that has options itself. */
type Table<T> = { readonly [Method in keyof T]?: { readonly [place: number]: object } }

/** The options of the argument at this position of a method. */
type Taken<T, Method extends keyof T, Place extends number> = T[Method] extends (...args: infer Args) => unknown
  ? Known<NonNullable<Args[Place]>>
  : never

const tenant: Known<TenantScope> = { tenant: true }
const tx: Known<Pick<SubmitHow, 'tx'>> = { tx: true }
const webhook: Known<JobWebhook> = { url: true, secret: true, types: true, headers: true }
const unique: Known<Unique> = { key: true, while: true, windowMs: true }
const submit: Known<Omit<SubmitOptions, 'webhook' | 'unique'>> & { webhook: typeof webhook; unique: typeof unique } = {
  key: true,
  keyCovers: true,
  tenant: true,
  runAt: true,
  delayMs: true,
  priority: true,
  limitKey: true,
  meta: true,
  traceparent: true,
  onConflict: true,
  unique,
  webhook,
}
const list: Known<ListOptions> = {
  kind: true,
  queue: true,
  tenant: true,
  state: true,
  items: true,
  since: true,
  until: true,
  before: true,
  limit: true,
}
const timeline: Known<TimelineOptions> = { after: true, limit: true }
const kinds: Known<KindOptions> = { tenant: true, after: true, limit: true }
const sessions: Known<SessionOptions> = { ended: true, before: true, limit: true }
const items: Taken<Holdfast, 'items', 1> = { state: true, after: true, limit: true }
const work: Known<WorkOptions> = { concurrency: true, queues: true }
const audit: Taken<Holdfast, 'audit', 0> = { latest: true, budgetMs: true, onCheck: true }
const cancel: Taken<Holdfast, 'cancel', 1> = { reason: true, by: true, tenant: true }
const pause: Known<PauseOptions> = { by: true, reason: true }
const redo: Taken<Holdfast, 'redo', 1> = { from: true, by: true, tenant: true }
const failures: Known<FailureOptions> = { tenant: true, kind: true, since: true, items: true, limit: true }
const repair: Taken<Holdfast, 'repair', 1> = { tenant: true, dryRun: true, by: true }

const engineOptions: Table<Holdfast> = {
  submit: { 2: { ...submit, ...tx } },
  submitMany: { 1: { ...submit, input: true }, 2: tx },
  submitMixed: { 0: { ...submit, job: true, input: true } },
  cancel: { 1: cancel },
  redo: { 1: redo },
  signal: { 3: { tenant: true, by: true } },
  why: { 1: tenant },
  pauseQueue: { 1: pause },
  resumeQueue: { 1: pause },
  failures: { 0: failures },
  repair: { 1: repair },
  work: { 0: work },
  audit: { 0: audit },
  prune: { 0: { dryRun: true } },
  get: { 1: tenant },
  state: { 1: tenant },
  list: { 0: list },
  page: { 0: list },
  timeline: { 1: timeline },
  items: { 1: items },
  stragglers: { 1: { limit: true } },
  kinds: { 0: kinds },
  kind: { 1: tenant },
  nearKinds: { 1: tenant },
  queues: { 0: tenant },
  sessions: { 0: sessions },
}

const subscribe: Known<SubscribeOptions> = {
  types: true,
  items: true,
  from: true,
  partitions: true,
  timeoutMs: true,
  failures: true,
  backoffMs: true,
}
const watch: Known<WatchOptions> = {
  types: true,
  tenant: true,
  job: true,
  items: true,
  after: true,
  back: true,
  follow: true,
  signal: true,
  mostBehind: true,
  onSkipped: true,
  pollMs: true,
}

const eventPage: Known<EventPageOptions> = {
  types: true,
  tenant: true,
  job: true,
  items: true,
  after: true,
  limit: true,
}

const actor: Known<Actor> = { by: true }
const act = { tenant: true, by: true } as const

const eventOptions: Table<Events> = {
  subscribe: { 1: subscribe },
  parked: { 1: { after: true, limit: true } },
  replay: { 1: { parked: true, from: true }, 2: actor },
  forget: { 1: actor },
  page: { 0: eventPage },
  watch: { 0: watch },
}

const endpoint: Known<NewEndpoint> = {
  url: true,
  types: true,
  secret: true,
  headers: true,
  tenant: true,
  items: true,
  note: true,
}
const change: Taken<Webhooks, 'update', 1> = { url: true, types: true, items: true, headers: true, note: true }
const deliveries: Known<DeliveryOptions> = {
  tenant: true,
  endpoint: true,
  job: true,
  state: true,
  before: true,
  limit: true,
}
const rotate: Taken<Webhooks, 'rotate', 1> = { ...act, graceMs: true, secret: true }
const replayAll: Taken<Webhooks, 'replayAll', 0> = { ...act, endpoint: true, since: true, state: true }

const webhookOptions: Table<Webhooks> = {
  create: { 0: endpoint, 1: actor },
  list: { 0: { tenant: true, before: true, limit: true } },
  get: { 1: tenant },
  update: { 1: change, 2: act },
  rotate: { 1: rotate },
  enable: { 1: act },
  disable: { 1: { ...act, why: true } },
  remove: { 1: act },
  test: { 1: act },
  deliveries: { 0: deliveries },
  backlog: { 0: tenant },
  delivery: { 1: tenant },
  replay: { 1: act },
  replayAll: { 0: replayAll },
}

const key: Known<NewKey> = { name: true, scopes: true, tenant: true, expiresMs: true }
const keyMaker: Known<KeyMaker> = { by: true, maker: true }
const keyList: Known<KeyListOptions> = { tenant: true, ending: true, good: true, before: true, limit: true }

const keyOptions: Table<Keys> = {
  create: { 0: key, 1: keyMaker },
  list: { 0: keyList },
  revoke: { 1: { tenant: true, by: true } },
}

const owner = { name: true, execution: true }
const barrier: Known<Omit<OpenBarrier, 'owner'>> & { owner: typeof owner } = {
  id: true,
  tenant: true,
  parts: true,
  expires: true,
  continuation: true,
  owner,
}

const barrierOptions: Table<Barriers> = {
  open: { 0: barrier, 1: tx },
  arrive: { 2: { ...tenant, ...tx } },
  abort: { 1: { ...tenant, ...tx } },
  get: { 1: tenant },
}

const newSchedule: Known<NewSchedule> = { ...ofTiming, kind: true, input: true, tenant: true, priority: true }
const scheduleList: Known<ScheduleListOptions> = { tenant: true, kind: true, after: true, limit: true }
const slots: Known<SlotOptions> = { tenant: true, before: true, limit: true }
const backfill: Known<BackfillRange> = { from: true, to: true, cap: true }

const scheduleOptions: Table<Schedules> = {
  set: { 1: newSchedule, 2: actor },
  get: { 1: tenant },
  list: { 0: scheduleList },
  remove: { 1: act },
  pause: { 1: { ...act, reason: true } },
  resume: { 1: act },
  trigger: { 1: act },
  backfill: { 1: backfill, 2: act },
  preview: { 1: { ...tenant, count: true } },
  history: { 1: slots },
}

const bulk: Known<NewBulkOperation> = {
  operation: true,
  filter: true,
  from: true,
  priority: true,
  runAt: true,
  delayMs: true,
  rate: true,
  reason: true,
  by: true,
  id: true,
}
const bulkQuestion: Known<BulkQuestion> = { operation: true, filter: true, before: true }
const bulkList: Known<BulkListOptions> = { tenant: true, state: true, before: true, limit: true }

const bulkOptions: Table<BulkOperations> = {
  preview: { 0: bulkQuestion },
  start: { 0: bulk },
  get: { 1: tenant },
  list: { 0: bulkList },
  skipped: { 1: { tenant: true, before: true, limit: true } },
  stop: { 1: { ...act, reason: true } },
}

type Call = (...given: unknown[]) => unknown

/** The same Holdfast, whose methods refuse unknown options. A misspelled option would otherwise be silently ignored. */
export function withKnownOptions(holdfast: Holdfast): Holdfast {
  return {
    ...guarded('', holdfast, engineOptions),
    events: guarded('events.', holdfast.events, eventOptions),
    webhooks: guarded('webhooks.', holdfast.webhooks, webhookOptions),
    keys: guarded('keys.', holdfast.keys, keyOptions),
    barrier: guarded('barrier.', holdfast.barrier, barrierOptions),
    schedules: guarded('schedules.', holdfast.schedules, scheduleOptions),
    bulk: guarded('bulk.', holdfast.bulk, bulkOptions),
  }
}

function guarded<T extends object>(prefix: string, methods: T, table: Table<T>): T {
  const all = { ...methods } as Record<string, unknown>
  for (const [method, places] of Object.entries(table) as [string, Record<number, object>][])
    all[method] = guard(`${prefix}${method}`, all[method] as Call, places)
  return all as T
}

function guard(name: string, call: Call, places: Record<number, object>): Call {
  return (...given) => {
    try {
      for (const place in places) refuseIn(name, given[place], places[place] as object)
    } catch (error) {
      // a watch returns a generator, so it throws at once; all other methods return a promise, and reject
      if (name === 'events.watch') throw error
      return Promise.reject(error)
    }
    return call(...given)
  }
}

function refuseIn(name: string, given: unknown, known: object): void {
  for (const one of Array.isArray(given) ? given : [given]) {
    refuseUnknown(name, one, known)
    for (const [option, inner] of Object.entries(known))
      if (typeof inner === 'object') refuseUnknown(`The option ${option} of ${name}`, one?.[option], inner)
  }
}
