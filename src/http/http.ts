/**
 * The HTTP door. A request is let in before anything is done for it: who calls, how often, with what right, and only then what was sent. Every
 * answer is one that its operation declares.
 */
import { randomUUID } from 'node:crypto'
import type { Config } from '../config/config.ts'
import type { Holdfast } from '../engine/engine.ts'
import { type HttpMeter, makeHttpMeter } from '../engine/http-meter.ts'
import type { Log } from '../engine/log.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import { within } from '../service/service.ts'
import { isTraceparent } from '../trace/trace.ts'
import { type Ask, askOf } from './ask.ts'
import { expectedBytes, isEmpty, readBody, smallBody } from './body.ts'
import { accountOf, type Caller, mustHave } from './caller.ts'
import { check } from './check.ts'
import { corsOf } from './cors.ts'
import { apiDocument } from './document.ts'
import { type Door, makeKinds } from './door.ts'
import { FairGate } from './fair-gate.ts'
import { makeKeyring } from './keyring.ts'
import { makeLimits } from './limits.ts'
import { makeLive } from './live.ts'
import { type BodySize, isBodyOptional, type Operation, type Reply } from './operation.ts'
import { operations } from './operations.ts'
import { makePages } from './pages.ts'
import { everyAnswer, problemOf } from './problem.ts'
import { type Found, makeRouter, type Route } from './router.ts'
import { makeSeal, sealOf } from './seal.ts'
import { Slices } from './slices.ts'

/** What an HTTP door needs. */
export interface HttpOptions {
  /** The engine; it may throw while there is none yet. */
  engine: () => Holdfast
  config: Config
  log: Log
  /** Kinds whose inputs are checked by their schemas. Others are known by name, once a worker has registered them. */
  jobs?: readonly AnyJob[]
  /** False lets in whoever comes from this machine. */
  needsKey?: boolean
}

/** The HTTP door, for any server. */
export interface Http {
  /** For a server that speaks fetch. */
  fetch(request: Request): Promise<Response>
  /** For any other. Never throws. */
  handle(request: Ask): Promise<Reply>
  /** Counts what its server does. */
  meter: HttpMeter
  /** Ends what waits, and the live view. */
  stop(): Promise<void>
}

/** What is at a path: its pattern, and how it is answered. */
interface Target {
  path: string
  give(request: Ask, params: Record<string, string>): Promise<Reply>
}

/** Makes the HTTP door of an engine. */
export function makeHttp(options: HttpOptions): Http {
  const { engine, config, log, jobs = [], needsKey = true } = options
  const stopping = new AbortController()
  /** Requests that are not answered yet. */
  let underWay = 0
  const door: Door = {
    engine,
    keyring: makeKeyring(() => engine().keys, { ...config, needsKey }),
    limits: makeLimits({ perSecond: config.httpRate, waits: config.httpWaits, bodyBytes: config.httpBodyBytes }),
    slices: new Slices(() => underWay - door.limits.waiting() > door.slices.size),
    gate: new FairGate(mostLarge),
    meter: makeHttpMeter(),
    live: makeLive(engine, (error) => log.warn({ err: error }, 'the live view could not read; it goes on')),
    seal: makeSeal(() => engine().keys.doorSecret()),
    kinds: makeKinds(engine, jobs),
    log,
    stopping: stopping.signal,
  }
  const find = makeRouter(routesOf(door, config))
  const cors = corsOf(config.httpOrigins)

  async function handle(request: Ask): Promise<Reply> {
    underWay += 1
    // never throws
    const reply = await answer(door, request, find(request.method, pathOf(request)))
    underWay -= 1
    return cors(request, reply)
  }

  const noting = setInterval(() => void door.keyring.noteUses().catch(() => {}), 60_000).unref()
  return {
    handle,
    meter: door.meter,
    async fetch(request) {
      const { status, headers, body } = await handle(askOf(request))
      if (request.method !== 'HEAD') return new Response(body, { status, headers })
      // a stream that nobody will read must not wait for a reader
      if (body instanceof ReadableStream) await body.cancel()
      return new Response(null, { status, headers })
    },
    async stop() {
      stopping.abort()
      clearInterval(noting)
      // a database that does not answer must not hold us: the one only reads, and the other is only for people
      await within(lastWordsMs, Promise.all([door.live.stop(), door.keyring.noteUses().catch(() => {})]))
    },
  }
}

const lastWordsMs = 2_000
/** Fewer than a server has connections to its database, or batches would keep all others waiting. */
const mostLarge = 2

function pathOf({ url }: Ask): string {
  const from = url.indexOf('/', 8)
  const query = url.indexOf('?', 8)
  return from < 0 ? '/' : url.slice(from, query < 0 ? undefined : query)
}

function routesOf(door: Door, config: Config): Route<Target>[] {
  const pages = Object.entries(makePages(door, apiDocument(config), config.httpPageRate))
  return [
    ...pages.map(([path, give]) => ({ method: 'GET', path, target: { path, give } })),
    ...operations.map((one) => {
      const mayBeEmpty = isBodyOptional(one)
      const limit = mostBytes(config, one.bodySize ?? 'small')
      const give: Target['give'] = (request, params) => serve(door, one, request, params, { limit, mayBeEmpty })
      return { method: one.method.toUpperCase(), path: one.path, target: { path: one.path, give } }
    }),
  ]
}

interface BodyLimit {
  /** The most bytes. */
  limit: number
  mayBeEmpty: boolean
}

function mostBytes(config: Config, size: BodySize): number {
  if (size === 'large') return config.httpMaxBytes
  return size === 'input' ? Math.min(config.httpMaxBytes, config.maxInputBytes + 65_536) : 65_536
}

async function serve(
  door: Door,
  one: Operation,
  request: Ask,
  params: Record<string, string>,
  size: BodyLimit,
): Promise<Reply> {
  const caller = await door.keyring.callerOf(request)
  door.limits.take(caller)
  mustHave(caller, one.scope, one.isForAll === true)
  const bytes = one.body ? expectedBytes(request, size.limit) : 0
  if (bytes <= smallBody) return handleOne(door, one, request, params, { ...size, caller })
  const release = door.limits.holdBody(caller, bytes)
  try {
    return await handleOne(door, one, request, params, { ...size, caller })
  } finally {
    release()
  }
}

async function handleOne(
  door: Door,
  one: Operation,
  request: Ask,
  params: Record<string, string>,
  { caller, limit, mayBeEmpty }: BodyLimit & { caller: Caller },
): Promise<Reply> {
  const owner = accountOf(caller)
  const bodyOf = () => (mayBeEmpty && isEmpty(request) ? {} : readBody(request, limit, { slices: door.slices, owner }))
  return one.handle({
    hf: door.engine(),
    door: { ...door, seal: sealOf(door.seal, caller.tenant) },
    caller,
    request,
    params: check('path', one.params, params),
    query: check('query', one.query, queryOf(request)),
    headers: one.headers ? check('headers', one.headers, request.all()) : {},
    // where nothing has to be said, nothing is as good as an empty object
    body: one.body ? check('body', one.body, await bodyOf()) : undefined,
    /** Made only for those who wait. */
    get signal() {
      return AbortSignal.any([request.signal, door.stopping])
    },
  })
}

function queryOf(request: Ask): Record<string, unknown> {
  // without a prototype, __proto__ is a name like any other
  const query: Record<string, unknown> = Object.create(null)
  const at = request.url.indexOf('?')
  if (at < 0) return query
  // said twice is an array, which no schema takes: better than to guess which one was meant
  for (const [name, value] of new URLSearchParams(request.url.slice(at + 1)))
    query[name] = Object.hasOwn(query, name) ? [query[name], value].flat() : value
  return query
}

function nothingThere(method: string, found: { allowed: string[] } | null): HoldfastError {
  if (found === null)
    return new HoldfastError('route_not_found', 'There is nothing at that path. /docs lists all operations.')
  const allow = found.allowed.join(', ')
  return new HoldfastError('method_not_allowed', `That path takes ${allow}, not ${method.slice(0, 20)}.`, {
    details: { allow },
  })
}

/** Gives an answer what every answer has, and turns whatever is thrown into a problem. */
async function answer(door: Door, request: Ask, found: Found<Target>): Promise<Reply> {
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
      door.log.error({ err: error, requestId, method: request.method, path: pathOf(request) }, 'a request failed')
  }
  const { status, body } = reply
  const method = methods.has(request.method) ? request.method : 'other'
  door.meter.answered({ route: target?.target.path ?? 'none', method, status, ms: performance.now() - sinceMs })
  const trace = request.headers.get('traceparent')
  const headers = { 'cache-control': 'no-store', ...reply.headers, ...everyAnswer, 'x-request-id': requestId }
  return { status, body, headers: isTraceparent(trace) ? { ...headers, traceparent: trace } : headers }
}

/** Others are counted as one, or anybody could make series without end. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'])

/** Random rather than counted: a counter would tell tenants how many requests others make. */
function requestIdOf(request: Ask): string {
  const given = request.headers.get('x-request-id') ?? request.headers.get('x-correlation-id')
  return given !== null && /^[\w.:/+=-]{1,128}$/.test(given) ? given : randomUUID()
}
