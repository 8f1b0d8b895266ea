export type { Arrived, Opened } from './barrier/barrier.ts'
export { type HttpOwnerOptions, httpOwner } from './barrier/http-owner.ts'
export type { MarkAnswer, Owner, OwnerStatus } from './barrier/owner.ts'
export type { Bulk, BulkListOptions, BulkOperations, ShownFilter, SkippedJob } from './bulk/bulk.ts'
export type { FailureGroup, FailureOptions, Failures } from './bulk/failures.ts'
export type { BulkFilter } from './bulk/filter.ts'
export type { BulkOperation, BulkState, SkipReason } from './bulk/operations.ts'
export type { BulkPreview } from './bulk/preview.ts'
export type { BulkQuestion, NewBulkOperation } from './bulk/request.ts'
export type { Barriers, OpenBarrier, OwnedBarrier } from './engine/barriers.ts'
export { type ConnectOptions, connect } from './engine/connect.ts'
export type { Holdfast } from './engine/engine.ts'
export type { Handle } from './engine/handle.ts'
export type { Heard, HeardName, Listener } from './engine/listeners.ts'
export type { PruneReport } from './engine/prune.ts'
export type { Signalled, SignalOptions } from './engine/signal.ts'
export type { SubmitHow } from './engine/submissions.ts'
export type { Repaired, Why, WhySnapshot } from './engine/why.ts'
export type { Working, WorkOptions } from './engine/work.ts'
export { type ErrorCode, errorCodes, HoldfastError, PermanentError, RateLimited } from './errors/errors.ts'
export type { EventContext, EventHandler } from './events/dispatch.ts'
export type { LogEvent } from './events/event.ts'
export type { Events } from './events/events.ts'
export type { Group, ParkedEvent } from './events/group.ts'
export type { Replay } from './events/replay.ts'
export type { SubscribeOptions, Subscription } from './events/subscribe.ts'
export type { WatchOptions } from './events/watch.ts'
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
export type { KindLimit, LimitRules, Rate } from './job/limit.ts'
export { can, type FinalState, isFinal, type LiveState, type MoveName, type State } from './job/machine.ts'
export type { Middleware, RunningAttempt, SentSignal, SubmittedJob } from './job/middleware.ts'
export {
  type MissedMode,
  type OverlapMode,
  type ScheduleDeclaration,
  type ScheduleTiming,
  slotOf,
} from './job/schedule.ts'
export type { Actor, TenantScope } from './job/scope.ts'
export type { OnConflict, SubmitOutcome, Unique } from './job/unique.ts'
export type { Wait, Waits } from './job/wait.ts'
export type { ApiKey, Keys, NewKey, Scope } from './keys/keys.ts'
export type { Limit, Limits, LimitTarget, QueueRules } from './limits/limits.ts'
export type { Queryable } from './postgres/store.ts'
export type { AfterItem, FanOutProgress, Item, Straggler } from './reads/fan-outs.ts'
export type { Job, JobSummary, Result, TimelineEvent } from './reads/job.ts'
export type { RegisteredKind } from './reads/kinds.ts'
export type { ListOptions } from './reads/list-filter.ts'
export type { Page } from './reads/page.ts'
export type { Queue } from './reads/queues.ts'
export type { Reads, TimelineOptions } from './reads/reads.ts'
export type { Leader, OldSnapshot, Recovery, Refusal, Revival } from './reads/recovery.ts'
export type { Session, SessionOptions } from './reads/sessions.ts'
export type { Throughput } from './reads/throughput.ts'
export type { Rung } from './reaper/recovery-bound.ts'
export type { RemoteAttempt } from './remote/claim.ts'
export type { RemoteKind, RemoteStage } from './remote/kinds.ts'
export type { LostAttempt, OpenedRemote, OpenRemote, Remote, RemoteScope } from './remote/remote.ts'
export type { RemoteError, RemoteErrorCode, RemoteOutcome, RemoteReport } from './remote/validate.ts'
export type { Backfilled, BackfillRange } from './schedule/backfill.ts'
export type { NewSchedule, Schedule, ScheduleListOptions, Slot, SlotOptions } from './schedule/schedule.ts'
export type { Schedules } from './schedule/schedules.ts'
export { migrate } from './schema/migrate.ts'
export type { JobWebhook, SubmitOptions } from './submit/prepare.ts'
export type { Backlog, Deliveries, Delivery, DeliveryOptions } from './webhooks/deliveries.ts'
export type { Endpoint, NewEndpoint } from './webhooks/endpoints.ts'
export type { PostResult } from './webhooks/post.ts'
export type { GivenWebhook } from './webhooks/webhook.ts'
export type { Webhooks } from './webhooks/webhooks.ts'
export type { Facts } from './why/facts.ts'
export type { RepairName } from './why/repair.ts'
export { AttemptAborted } from './worker/attempt.ts'
export { AttemptSnoozed } from './worker/snooze.ts'
