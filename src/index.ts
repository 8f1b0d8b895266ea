export { type HttpOwnerOptions, httpOwner } from './barrier/http-owner.ts'
export type { Arrived, Opened } from './barrier/owned.ts'
export type { MarkAnswer, Owner, OwnerStatus } from './barrier/owner.ts'
export type { Barriers, OpenBarrier, OwnedBarrier } from './engine/barriers.ts'
export { type ConnectOptions, connect } from './engine/connect.ts'
export type { Deliveries, Delivery, DeliveryOptions, TenantScope } from './engine/deliveries.ts'
export type { Holdfast, SubmitHow } from './engine/engine.ts'
export type {
  Events,
  Group,
  ParkedEvent,
  Replay,
  SubscribeOptions,
  Subscription,
  WatchOptions,
} from './engine/events.ts'
export type { AfterItem, FanOutProgress, Item, Straggler } from './engine/fan-outs.ts'
export type { ListOptions } from './engine/given.ts'
export type { Handle } from './engine/handle.ts'
export type { Job, JobSummary, Result, TimelineEvent } from './engine/job.ts'
export type { Endpoint, NewEndpoint, Webhooks } from './engine/webhooks.ts'
export type { Mended, Why, WhySnapshot } from './engine/why.ts'
export type { Working, WorkOptions } from './engine/work.ts'
export { type ErrorCode, errorCodes, HoldfastError, PermanentError } from './errors/errors.ts'
export type { EventContext, EventHandler } from './events/dispatch.ts'
export type { LogEvent } from './events/event.ts'
export {
  type AbortReason,
  type AnyJob,
  type Backoff,
  defineJob,
  type InputOf,
  type JobDefinition,
  type OutputOf,
  type OutputsOf,
  type Stage,
  type StageContext,
} from './job/define.ts'
export type { DeliveryState } from './job/delivery-state.ts'
export { type EventType, eventTypes } from './job/event-type.ts'
export { type Each, type FanOut, type ItemResult, isComplete, type Summary, type Tolerance } from './job/fan-out.ts'
export type { JobId } from './job/id.ts'
export { can, type FinalState, isFinal, type LiveState, type MoveName, type State } from './job/machine.ts'
export { migrate } from './store/migrate.ts'
export type { Queryable } from './store/store.ts'
export type { JobWebhook, SubmitOptions } from './submit/prepare.ts'
export type { PostResult } from './webhooks/post.ts'
export type { GivenWebhook } from './webhooks/webhook.ts'
export type { Facts } from './why/facts.ts'
export type { RepairName } from './why/repair.ts'
export { AttemptAborted } from './worker/attempt.ts'
