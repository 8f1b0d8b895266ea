// A Holdfast worker in TypeScript that needs only fetch. Start your own worker from it.
//
//     HOLDFAST_SERVER=http://127.0.0.1:7420 HOLDFAST_KEY=… node worker.ts
//
// (Node 22.18 and later, Bun and Deno run TypeScript directly. For Node 20, compile it with `npx tsc` first.)
//
// It holds one session, whose lease covers everything it runs. This is safe because:
// - a timer renews the lease. It aborts what the server reports as lost, and everything before the lease could run out;
// - every write carries the attempt number, so writes of a worker that lost its job are refused;
// - a request without an answer is sent again, and the server gives the same answer.
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

const server = process.env.HOLDFAST_SERVER ?? 'http://127.0.0.1:7420'
const key = process.env.HOLDFAST_KEY
const concurrency = Number(process.env.CONCURRENCY ?? 4)
const leaseMs = Number(process.env.LEASE_MS ?? 15_000)
const drainMs = 1_000 * Number(process.env.DRAIN_SECONDS ?? 10)

/** What a handler receives. */
interface Attempt {
  id: string
  attempt: number
  kind: string
  tenant: string
  stage: string
  input: unknown
  outputs: Record<string, unknown>
  timeoutMs: number
  signal: AbortSignal
  progress(done: number, total?: number, note?: string): void
  log(message: string, data?: Record<string, unknown>): void
}

/** Throw this from a handler when a retry cannot help. */
class PermanentError extends Error {}

// What this worker can do. Put your own handlers here.

function shout({ input }: Attempt): unknown {
  const { text } = (input ?? {}) as { text?: unknown }
  if (typeof text !== 'string') throw new PermanentError('The input must be an object with a text property.')
  return { text: text.toUpperCase(), by: 'typescript' }
}

/** Long work, in pieces: it reports its progress, and stops when its signal fires. */
async function count({ input, signal, progress, log }: Attempt): Promise<unknown> {
  const { to, pieceSeconds = 0.1 } = input as { to: number; pieceSeconds?: number }
  for (let done = 1; done <= to; done++) {
    await sleep(pieceSeconds * 1_000, undefined, { signal })
    progress(done, to)
  }
  log('counted', { to })
  return { counted: to, by: 'typescript' }
}

/** A second stage: it reads what the first one returned. */
function exclaim({ outputs }: Attempt): unknown {
  return { ...(outputs.count as object), mark: '!' }
}

const handlers: Record<string, Record<string, (attempt: Attempt) => unknown>> = {
  shout: { run: shout },
  count: { count, exclaim },
}

const kinds = [
  { name: 'shout' },
  {
    name: 'count',
    stages: [
      { name: 'count', timeoutMs: 60_000 },
      { name: 'exclaim', optional: true },
    ],
  },
]

/** The server refused the request. After any other error, it is unknown whether the request was carried out. */
class Refused extends Error {
  readonly code: string | undefined

  constructor(code: string | undefined, message: string) {
    super(message)
    this.code = code
  }
}

const isOver = (error: unknown) =>
  error instanceof Refused && (error.code === 'session_ended' || error.code === 'session_not_found')

async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await fetch(server + path, {
    method,
    headers: { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) },
    body: body === undefined ? null : JSON.stringify(body),
    signal: signal ?? AbortSignal.timeout(10_000),
  })
  if ([429, 500, 502, 503, 504].includes(response.status))
    throw new Error(`the server responded with ${response.status}`)
  const answer = (response.status === 204 ? {} : await response.json()) as { code?: string; detail?: string }
  if (!response.ok) throw new Refused(answer.code, answer.detail ?? `the server responded with ${response.status}`)
  return answer as T
}

/** Repeats a request, with growing pauses, until there is an answer. */
async function untilAnswered<T>(ask: () => Promise<T>, giveUp?: AbortSignal): Promise<T> {
  for (let pauseMs = 100; ; pauseMs = Math.min(5_000, 2 * pauseMs)) {
    try {
      return await ask()
    } catch (error) {
      if (error instanceof Refused || giveUp?.aborted) throw error
      console.log(`${(error as Error).message}; retrying`)
      await sleep(pauseMs)
    }
  }
}

interface Fence {
  id: string
  attempt: number
}
type Outcome = Fence & { outcome: string; output?: unknown; error?: object }
interface Held {
  fence: Fence
  abort: AbortController
}

const stopping = new AbortController()

/** Opens a session and works in it, until the server ends it or this process is told to stop. */
async function live(): Promise<void> {
  let confirmedAtMs = performance.now()
  const me = { kinds, host: hostname(), pid: process.pid, concurrency, leaseMs }
  const opened = await untilAnswered(
    () => call<{ id: number; leaseMs: number; heartbeatMs: number }>('POST', '/v1/sessions', me),
    stopping.signal,
  )
  const path = `/v1/sessions/${opened.id}`
  const over = new AbortController()
  const held = new Map<string, Held>()
  const outcomes: Outcome[] = []
  const reports: object[] = []
  console.log(`session ${opened.id} opened`)

  /** How long this worker can rely on its lease. A fifth of the lease is a safety margin. */
  const leftMs = () => confirmedAtMs + opened.leaseMs * 0.8 - performance.now()
  /** How long a request may take without delaying an abort. */
  const patienceMs = () =>
    leftMs() > 0 ? Math.ceil(Math.max(50, Math.min(opened.heartbeatMs, leftMs()))) : opened.heartbeatMs
  const abortAll = (reason: string) => {
    for (const { abort } of held.values()) abort.abort(reason)
  }

  /** Renews the lease, and aborts what was lost. If it cannot be renewed in time, everything is aborted. */
  async function keep(): Promise<void> {
    while (!over.signal.aborted) {
      const askedAtMs = performance.now()
      try {
        const patience = AbortSignal.timeout(patienceMs())
        const mine = { held: [...held.values()].map(({ fence }) => fence) }
        const { lost } = await call<{ lost: (Fence & { reason: string })[] }>(
          'POST',
          `${path}/heartbeat`,
          mine,
          patience,
        )
        confirmedAtMs = askedAtMs
        for (const one of lost) held.get(`${one.id} ${one.attempt}`)?.abort.abort(one.reason)
      } catch (error) {
        console.log(`heartbeat: ${(error as Error).message}`)
        if (isOver(error)) over.abort()
      }
      if (leftMs() <= 0) abortAll('lease_lost')
      await sleep(patienceMs(), undefined, { signal: over.signal }).catch(() => {})
    }
    abortAll('lease_lost')
  }

  async function claim(): Promise<void> {
    const enough = AbortSignal.any([over.signal, stopping.signal])
    while (!enough.aborted) {
      const most = concurrency - held.size
      try {
        if (most <= 0) await sleep(20)
        else {
          const signal = AbortSignal.any([enough, AbortSignal.timeout(40_000)])
          const wish = { most, waitMs: 20_000 }
          const { attempts } = await call<{ attempts: Attempt[] }>('POST', `${path}/claim`, wish, signal)
          for (const given of attempts) begin(given)
        }
      } catch (error) {
        if (isOver(error)) over.abort()
        if (enough.aborted) return
        if (error instanceof Refused) throw error
        console.log(`claim: ${(error as Error).message}`)
        await sleep(1_000)
      }
    }
  }

  function begin(given: Attempt): void {
    const fence = { id: given.id, attempt: given.attempt }
    const abort = new AbortController()
    held.set(`${fence.id} ${fence.attempt}`, { fence, abort })
    const tooLate = setTimeout(() => abort.abort('timeout'), given.timeoutMs)
    const attempt: Attempt = {
      ...given,
      signal: abort.signal,
      progress: (done, total, note) => reports.push({ ...fence, done, total, note }),
      log: (message, data) => reports.push({ ...fence, log: [{ message, data }] }),
    }
    console.log(`${given.kind} ${given.id}: attempt ${given.attempt}, stage ${given.stage}`)
    void run(attempt, fence).then((outcome) => {
      clearTimeout(tooLate)
      outcomes.push(outcome)
    })
  }

  /** Runs the handler and returns its outcome. */
  async function run(attempt: Attempt, fence: Fence): Promise<Outcome> {
    // without a lease, nothing may start: another worker may already have the job
    if (leftMs() <= 0) return { ...fence, outcome: 'released' }
    try {
      const output = await handlers[attempt.kind]?.[attempt.stage]?.(attempt)
      if (!attempt.signal.aborted) return { ...fence, outcome: 'succeeded', output }
    } catch (thrown) {
      const error = { message: String(thrown), isPermanent: thrown instanceof PermanentError }
      if (!attempt.signal.aborted) return { ...fence, outcome: 'failed', error }
    }
    if (attempt.signal.reason === 'timeout')
      return { ...fence, outcome: 'failed', error: { message: 'The handler timed out.', code: 'timeout' } }
    return { ...fence, outcome: 'released' }
  }

  /** Sends outcomes and reports, in batches. */
  async function tell(): Promise<void> {
    while (!over.signal.aborted || held.size > 0) {
      // in this order, the reports of a handler are stored before its outcome
      const batch = outcomes.splice(0, 100)
      while (reports.length > 0)
        await call('POST', `${path}/progress`, { reports: reports.splice(0, 100) }).catch((error: Error) =>
          console.log(`progress: ${error.message}`),
        )
      if (batch.length > 0) await settle(batch)
      else await sleep(20)
    }
  }

  async function settle(batch: Outcome[]): Promise<void> {
    try {
      const ask = () => call<{ results: (Fence & { result: string })[] }>('POST', `${path}/settle`, { outcomes: batch })
      const { results } = await untilAnswered(ask, over.signal)
      for (const { id, result } of results) console.log(`${id}: ${result}`)
    } catch (error) {
      console.log(`outcomes lost: ${(error as Error).message}`) // the server gives these jobs to another worker
    }
    for (const { id, attempt } of batch) held.delete(`${id} ${attempt}`)
  }

  /** Gives handlers some time to finish, then releases the rest. */
  async function close(): Promise<void> {
    const untilMs = performance.now() + drainMs
    while (held.size > 0 && performance.now() < untilMs && !over.signal.aborted) await sleep(20)
    abortAll('shutdown')
    over.abort()
    await call('DELETE', path)
    console.log('session closed')
  }

  const keeping = keep()
  const telling = tell()
  await claim()
  if (stopping.signal.aborted) return close()
  over.abort()
  await Promise.all([keeping, telling])
}

for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => stopping.abort())
try {
  while (!stopping.signal.aborted) await live()
  process.exit(0)
} catch (error) {
  console.log(`this worker cannot continue: ${(error as Error).message}`)
  process.exit(stopping.signal.aborted ? 0 : 1)
}
