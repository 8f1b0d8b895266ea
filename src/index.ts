export { type HttpOwnerOptions, httpOwner } from './barrier/http-owner.ts'
export type { Arrived, Opened } from './barrier/owned.ts'
export type { MarkAnswer, Owner, OwnerStatus } from './barrier/owner.ts'
export type { Barriers, OpenBarrier, OwnedBarrier } from './engine/barriers.ts'
export { type ConnectOptions, connect } from './engine/connect.ts'
export type { Actor, Backlog, Deliveries, Delivery, DeliveryOptions, TenantScope } from './engine/deliveries.ts'
export type { Holdfast, SubmitHow } from './engine/engine.ts'
export type { Events, Replay, SubscribeOptions, Subscription, WatchOptions } from './engine/events.ts'
export type { AfterItem, FanOutProgress, Item, Straggler } from './engine/fan-outs.ts'
export type { ListOptions } from './engine/given.ts'
export type { Group, ParkedEvent } from './engine/groups.ts'
export type { Handle } from './engine/handle.ts'
export type { Job, JobSummary, Result, TimelineEvent } from './engine/job.ts'
export type { ApiKey, Keys, NewKey, Scope } from './engine/keys.ts'
export type { RegisteredKind } from './engine/kinds.ts'
export type { Page } from './engine/page.ts'
export type { Pulse } from './engine/pulse.ts'
export type { Queue } from './engine/queues.ts'
export type { Reads, TimelineOptions } from './engine/reads.ts'
export type { Leader, Recovery, Refusal, Revival } from './engine/recovery.ts'
export type { Session, SessionOptions } from './engine/sessions.ts'
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
export {
  type Each,
  type FanOut,
  type ItemContext,
  type ItemResult,
  isComplete,
  type Summary,
  type Tolerance,
} from './job/fan-out.ts'
export type { JobId } from './job/id.ts'
export { can, type FinalState, isFinal, type LiveState, type MoveName, type State } from './job/machine.ts'
export type { Rung } from './reaper/bound.ts'
export { migrate } from './store/migrate.ts'
export type { Queryable } from './store/store.ts'
export type { JobWebhook, SubmitOptions } from './submit/prepare.ts'
export type { PostResult } from './webhooks/post.ts'
export type { GivenWebhook } from './webhooks/webhook.ts'
export type { Facts } from './why/facts.ts'
export type { RepairName } from './why/repair.ts'
export { AttemptAborted } from './worker/attempt.ts'
export type { LostAttempt, OpenedRemote, OpenRemote, Remote, RemoteScope } from './worker/remote.ts'
export type { RemoteAttempt } from './worker/remote-claim.ts'
export type { RemoteError, RemoteErrorCode, RemoteOutcome, RemoteReport } from './worker/remote-given.ts'
export type { RemoteKind, RemoteStage } from './worker/remote-kinds.ts'
