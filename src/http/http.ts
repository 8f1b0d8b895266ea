/**
 * The HTTP API. A request is admitted before any work is done for it: first its key, then its rate limit, then its scope, and only then what was
 * sent. Every response is one that its operation declares.
 */
import { randomUUID } from 'node:crypto'
import { setImmediate as immediate } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import type { Holdfast } from '../engine/engine.ts'
import { harmless, type Log } from '../engine/log.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import { type HttpMeter, makeHttpMeter } from '../metrics/http-metrics.ts'
import { within } from '../service/service.ts'
import { isTraceparent } from '../trace/trace.ts'
import { expectedBytes, isEmpty, readBody, smallBody } from './body.ts'
import { accountOf, type Caller, mustHave } from './caller.ts'
import { check } from './check.ts'
import { corsOf } from './cors.ts'
import { cursorTokensOf, makeCursorTokens } from './cursor-token.ts'
import { apiDocument } from './document.ts'
import { FairGate } from './fair-gate.ts'
import { type Gateway, makeKinds } from './gateway.ts'
import { makeKeyring } from './keyring.ts'
import { lately } from './lately.ts'
import { makeLimits } from './limits.ts'
import { Live } from './live.ts'
import { type BodySize, isBodyOptional, nothing, type Operation, type Reply } from './operation.ts'
import { operations } from './operations.ts'
import { makePages } from './pages.ts'
import { everyAnswer, problemOf } from './problem.ts'
import { type HttpRequest, requestOf } from './request.ts'
import { type Found, makeRouter, type Route } from './router.ts'
import { Slices } from './slices.ts'

/** What the HTTP API needs. */
export interface HttpOptions {
  /** The engine; it may throw while there is none yet. */
  engine: () => Holdfast
  /** The settings, as `hf.config` has them. */
  config: Config
  /** A pino-like logger. */
  log: Log
  /** Kinds whose inputs are validated by their schemas. Other kinds are known by name once a worker has registered them. */
  jobs?: readonly AnyJob[]
  /** Set to false to accept requests from this machine without a key. */
  needsKey?: boolean
}

/** The HTTP API, for any server. */
export interface Http {
  /** For servers with a fetch handler. */
  fetch(request: Request): Promise<Response>
  /** For any other server. Never throws. */
  handle(request: HttpRequest): Promise<Reply>
  /** Counts what its server does. */
  meter: HttpMeter
  /** Whether small requests are in progress, or were a moment ago. Large ones make room for them. */
  isBusy(): boolean
  /** Ends waiting requests and live streams. */
  stop(): Promise<void>
}

/** What is at a path: its pattern, and what responds. */
interface Target {
  path: string
  give(request: HttpRequest, params: Record<string, string>): Promise<Reply>
}

/** Makes the HTTP API of an engine. */
export function makeHttp(options: HttpOptions): Http {
  const { engine, config, jobs = [], needsKey = true } = options
  const log = harmless(options.log)
  const stopping = new AbortController()
  /** Requests in progress. */
  let underWay = 0
  const isBusy = lately(
    () => underWay - gateway.limits.large() - gateway.limits.waiting() - gateway.keyring.held() > 0,
    busyMs,
  )
  const gateway: Gateway = {
    engine,
    keyring: makeKeyring(() => engine().keys, { ...config, needsKey, stopping: stopping.signal }),
    limits: makeLimits({ perSecond: config.httpRate, waits: config.httpWaits, bodyBytes: config.httpBodyBytes }),
    slices: new Slices(isBusy),
    gate: new FairGate(mostLarge, { rests: isBusy }),
    scans: new FairGate(Math.max(config.httpScans, Math.floor(config.poolSize / 2)), {
      each: config.httpScans,
      rests: () => true,
    }),
    meter: makeHttpMeter(),
    live: new Live(engine, (error) => log.warn({ err: error }, 'the live view could not read events; retrying')),
    cursorTokens: makeCursorTokens(() => engine().keys.serverSecret()),
    kinds: makeKinds(engine, jobs),
    log,
    sendMs: config.httpSendMs,
    stopping: stopping.signal,
  }
  const find = makeRouter(routesOf(gateway, config))
  const cors = corsOf(config.httpOrigins)

  async function handle(request: HttpRequest): Promise<Reply> {
    underWay += 1
    // never throws
    const reply = await answer(gateway, request, find(request.method, pathOf(request)))
    underWay -= 1
    return cors(request, reply)
  }

  const noting = setInterval(() => void gateway.keyring.noteUses().catch(() => {}), 60_000).unref()
  return {
    handle,
    meter: gateway.meter,
    isBusy,
    async fetch(request) {
      const { status, headers, body } = await handle(requestOf(request))
      if (request.method !== 'HEAD') return new Response(body, { status, headers })
      // a stream that nobody will read must not wait for a reader
      if (body instanceof ReadableStream) await body.cancel()
      return new Response(null, { status, headers })
    },
    async stop() {
      stopping.abort()
      clearInterval(noting)
      // an unresponsive database must not delay the stop: one of these only reads, and the other only records when keys were used
      await within(lastWordsMs, Promise.all([gateway.live.stop(), gateway.keyring.noteUses().catch(() => {})]))
    },
  }
}

const lastWordsMs = 2_000
/** Callers who send small requests one after another are never all gone for longer than this. */
const busyMs = 100
/** Fewer than a server has database connections, or large batches would make everyone else wait. */
const mostLarge = 2

function pathOf({ url }: HttpRequest): string {
  const from = url.indexOf('/', 8)
  const query = url.indexOf('?', 8)
  return from < 0 ? '/' : url.slice(from, query < 0 ? undefined : query)
}

function routesOf(gateway: Gateway, config: Config): Route<Target>[] {
  const pages = Object.entries(makePages(gateway, apiDocument(config), config.httpPageRate))
  return [
    ...pages.map(([path, give]) => ({ method: 'GET', path, target: { path, give } })),
    ...operations.map((one) => {
      const mayBeEmpty = isBodyOptional(one)
      const limit = mostBytes(config, one.bodySize ?? 'small')
      const give: Target['give'] = (request, params) => serve(gateway, one, request, params, { limit, mayBeEmpty })
      return { method: one.method.toUpperCase(), path: one.path, target: { path: one.path, give } }
    }),
  ]
}

interface BodyLimit {
  isLarge?: boolean
  /** The most bytes. */
  limit: number
  mayBeEmpty: boolean
}

function mostBytes(config: Config, size: BodySize): number {
  if (size === 'large') return config.httpMaxBytes
  return size === 'input' ? Math.min(config.httpMaxBytes, config.maxInputBytes + 65_536) : 65_536
}

async function serve(
  gateway: Gateway,
  one: Operation,
  request: HttpRequest,
  params: Record<string, string>,
  size: BodyLimit,
): Promise<Reply> {
  const caller = await gateway.keyring.callerOf(request)
  gateway.limits.take(caller)
  mustHave(caller, one.scope, one.isForAll === true)
  if (one.isScan)
    return gateway.scans.run(accountOf(caller), () => scan(gateway, one, request, params, { ...size, caller }))
  const bytes = one.body ? expectedBytes(request, size.limit) : 0
  if (bytes <= smallBody) return handleOne(gateway, one, request, params, { ...size, caller })
  // from here on it yields to small requests
  const release = gateway.limits.holdBody(caller, bytes)
  try {
    return await handleOne(gateway, one, request, params, { ...size, caller, isLarge: true })
  } finally {
    release()
  }
}

/** Does nothing if the client went away while the scan waited for its turn. */
async function scan(
  gateway: Gateway,
  one: Operation,
  request: HttpRequest,
  params: Record<string, string>,
  asked: BodyLimit & { caller: Caller },
): Promise<Reply> {
  return request.signal.aborted ? nothing() : handleOne(gateway, one, request, params, asked)
}

async function handleOne(
  gateway: Gateway,
  one: Operation,
  request: HttpRequest,
  params: Record<string, string>,
  { caller, limit, mayBeEmpty, isLarge = false }: BodyLimit & { caller: Caller },
): Promise<Reply> {
  const owner = accountOf(caller)
  const how = { slices: gateway.slices, owner, leavesInputs: one.leavesInputs === true }
  const bodyOf = () => (mayBeEmpty && isEmpty(request) ? {} : readBody(request, limit, how))
  return one.handle({
    hf: gateway.engine(),
    gateway: { ...gateway, cursorTokens: cursorTokensOf(gateway.cursorTokens, caller.tenant) },
    caller,
    request,
    params: check('path', one.params, params),
    query: check('query', one.query, queryOf(request)),
    headers: one.headers ? check('headers', one.headers, request.all()) : {},
    // if all fields are optional, no body means an empty object
    body: one.body ? check('body', one.outerBody ?? one.body, await bodyOf()) : undefined,
    isLarge,
    rest: () => (isLarge ? gateway.slices.rest() : immediate()),
    /** Made only for operations that wait. */
    get signal() {
      return AbortSignal.any([request.signal, gateway.stopping])
    },
  })
}

function queryOf(request: HttpRequest): Record<string, unknown> {
  // without a prototype, __proto__ is a name like any other
  const query: Record<string, unknown> = Object.create(null)
  const at = request.url.indexOf('?')
  if (at < 0) return query
  // a repeated name becomes an array, which every schema rejects; that is better than guessing which value was meant
  for (const [name, value] of new URLSearchParams(request.url.slice(at + 1)))
    query[name] = Object.hasOwn(query, name) ? [query[name], value].flat() : value
  return query
}

function nothingThere(method: string, found: { allowed: string[] } | null): HoldfastError {
  if (found === null)
    return new HoldfastError('route_not_found', 'No operation has this path. /docs lists all operations.')
  const allow = found.allowed.join(', ')
  return new HoldfastError('method_not_allowed', `This path accepts ${allow}, not ${method.slice(0, 20)}.`, {
    details: { allow },
  })
}

/** Adds what every response has, and turns errors into problems. */
async function answer(gateway: Gateway, request: HttpRequest, found: Found<Target>): Promise<Reply> {
  const requestId = requestIdOf(request)
  const sinceMs = performance.now()
  const target = found !== null && 'target' in found ? found : null
  let reply: Reply
  try {
    if (!target) throw nothingThere(request.method, found as { allowed: string[] } | null)
    reply = await target.target.give(request, target.params)
  } catch (error) {
    reply = problemOf(error, requestId)
    if (reply.status >= 500 && !(error instanceof HoldfastError && error.status === 503))
      gateway.log.error({ err: error, requestId, method: request.method, path: pathOf(request) }, 'request failed')
  }
  const { status, body } = reply
  const method = methods.has(request.method) ? request.method : 'other'
  gateway.meter.answered({ route: target?.target.path ?? 'none', method, status, ms: performance.now() - sinceMs })
  const trace = request.headers.get('traceparent')
  const headers = { 'cache-control': 'no-store', ...reply.headers, ...everyAnswer, 'x-request-id': requestId }
  return { status, body, headers: isTraceparent(trace) ? { ...headers, traceparent: trace } : headers }
}

/** All others count as one, or anyone could create metric series without limit. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'])

/** Random rather than counted: a counter would tell tenants how many requests others make. */
function requestIdOf(request: HttpRequest): string {
  const sent = request.headers.get('x-request-id') ?? request.headers.get('x-correlation-id')
  return sent !== null && /^[\w.:/+=-]{1,128}$/.test(sent) ? sent : randomUUID()
}
