import { messageOf, PermanentError } from '../errors/errors.ts'
import { backoffMs } from '../job/backoff.ts'
import type { Backoff } from '../job/define.ts'
import { pause } from '../service/service.ts'
import type { HeldCursor } from './cursor.ts'
import type { LogEvent } from './event.ts'

/** What a handler of events receives with the event. */
export interface EventContext {
  group: string
  partition: number
  /** How often this process has failed to handle the event before. */
  failures: number
  /** Fires on timeout, and when another reader may take over. Return then, because the event will be handled again. */
  signal: AbortSignal
}

/** Handles one event. If it throws, the event is retried, and eventually parked. */
export type EventHandler = (event: LogEvent, ctx: EventContext) => unknown

/** How to handle events. */
export interface DispatchParts {
  group: string
  handler: EventHandler
  timeoutMs: number
  /** Failures after which an event is parked. */
  most: number
  backoff: Required<Backoff>
  /** Called before each retry delay. */
  onFailure: (event: LogEvent, failures: number, error: string) => Promise<void>
}

/** How the handling of an event ended. Interrupted: it may or may not have been handled, so it doesn't count as handled. */
export type Dispatched =
  | { kind: 'handled' }
  | { kind: 'poison'; failures: number; error: string }
  | { kind: 'interrupted' }

/** Handles an event, and retries it until it is handled or has failed too often. */
export async function dispatch(
  parts: DispatchParts,
  event: LogEvent,
  { fence: { partition }, lost, leaving }: HeldCursor,
): Promise<Dispatched> {
  for (let failures = 0; ; ) {
    const thrown = await once(parts, event, { group: parts.group, partition, failures }, lost)
    if (lost.aborted) return { kind: 'interrupted' }
    if (thrown === undefined) return { kind: 'handled' }
    failures++
    const error = messageOf(thrown.error)
    if (failures >= parts.most || isPermanent(thrown.error)) return { kind: 'poison', failures, error }
    await parts.onFailure(event, failures, error)
    // the next reader retries it
    await pause(backoffMs(failures, parts.backoff), leaving)
    if (leaving.aborted) return { kind: 'interrupted' }
  }
}

function isPermanent(thrown: unknown): boolean {
  return thrown instanceof PermanentError || (thrown as Error | null)?.name === 'PermanentError'
}

/** Calls the handler once. A handler that does not end in time is abandoned: nothing can stop it, but nothing waits for it either. */
function once(
  { handler, timeoutMs }: DispatchParts,
  event: LogEvent,
  about: Omit<EventContext, 'signal'>,
  lost: AbortSignal,
): Promise<{ error: unknown } | undefined> {
  return new Promise((resolve) => {
    const late = new AbortController()
    let signal: AbortSignal | undefined
    const ctx = {
      ...about,
      // made on demand: most handlers are short and never use it
      get signal() {
        signal ??= AbortSignal.any([late.signal, lost])
        return signal
      },
    }
    const end = (ended: { error: unknown } | undefined) => {
      clearTimeout(timer)
      lost.removeEventListener('abort', onLost)
      resolve(ended)
    }
    const onLost = () => end({ error: lost.reason })
    const timer = setTimeout(() => {
      late.abort()
      end({ error: new Error(`The handler did not end within ${timeoutMs} ms.`) })
    }, timeoutMs)
    lost.addEventListener('abort', onLost)
    call(handler, event, ctx).then(
      () => end(undefined),
      (error: unknown) => end({ error }),
    )
  })
}

async function call(handler: EventHandler, event: LogEvent, ctx: EventContext): Promise<void> {
  await handler(event, ctx)
}
