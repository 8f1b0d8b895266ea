/**
 * The HTTP door. A request is let in before anything is done for it: who calls, how often, with what right, and only then what was sent. Every
 * answer is one that its operation declares.
 */
import { randomUUID } from 'node:crypto'
import { OpenAPIHono } from '@hono/zod-openapi'
import { cors } from 'hono/cors'
import type { Config } from '../config/config.ts'
import type { Holdfast } from '../engine/engine.ts'
import { makeHttpMeter } from '../engine/http-meter.ts'
import type { Log } from '../engine/log.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import { within } from '../service/service.ts'
import { isTraceparent } from '../trace/trace.ts'
import { isEmpty, readBody } from './body.ts'
import { mustHave } from './caller.ts'
import { documentOf } from './document.ts'
import { type Door, makeKinds } from './door.ts'
import { makeKeyring } from './keyring.ts'
import { makeLimits } from './limits.ts'
import { makeLive } from './live.ts'
import { type BodySize, isBodyOptional, type Operation, type Reply } from './operation.ts'
import { operations } from './operations.ts'
import { addPages } from './pages.ts'
import { everyAnswer, problemOf } from './problem.ts'
import { makeSeal, sealOf } from './seal.ts'
import type { z } from './zod.ts'

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

/** The HTTP door, for any server that speaks fetch. */
export interface Http {
  fetch(request: Request, env?: unknown): Response | Promise<Response>
  /** Ends what waits, and the live view. */
  stop(): Promise<void>
}

/** Makes the HTTP door of an engine. */
export function makeHttp(options: HttpOptions): Http {
  const { engine, config, log, jobs = [], needsKey = true } = options
  const stopping = new AbortController()
  const door: Door = {
    engine,
    keyring: makeKeyring(() => engine().keys, needsKey),
    limits: makeLimits({ perSecond: config.httpRate, waits: config.httpWaits }),
    meter: makeHttpMeter(),
    live: makeLive(engine, (error) => log.warn({ err: error }, 'the live view could not read; it goes on')),
    seal: makeSeal(() => engine().keys.doorSecret()),
    kinds: makeKinds(engine, jobs),
    log,
    stopping: stopping.signal,
  }
  const app = new OpenAPIHono({ strict: false })
  if (config.httpOrigins.length > 0) app.use('/v1/*', cors({ origin: [...config.httpOrigins], exposeHeaders: exposed }))
  for (const one of operations) {
    const limit = mostBytes(config, one.bodySize ?? 'small')
    app.on(one.method.toUpperCase(), one.path.replace(/\{(\w+)\}/g, ':$1'), (c) =>
      answer(door, c.req.raw, one.path, () =>
        serve(door, one, c.req.raw, one.params ? (c.req.param() as Record<string, string>) : {}, limit),
      ),
    )
  }
  addPages(app, door, documentOf(app, config), answer)
  app.notFound((c) => answer(door, c.req.raw, 'none', () => Promise.reject(nothingThere(c.req.method, c.req.path))))
  app.onError((error, c) => answer(door, c.req.raw, 'none', () => Promise.reject(error)))
  const noting = setInterval(() => void door.keyring.noteUses().catch(() => {}), 60_000).unref()
  return {
    fetch: (request, env) => app.fetch(request, env as object),
    async stop() {
      stopping.abort()
      clearInterval(noting)
      // a database that does not answer must not hold us: the one only reads, and the other is only for people
      await within(lastWordsMs, Promise.all([door.live.stop(), door.keyring.noteUses().catch(() => {})]))
    },
  }
}

const lastWordsMs = 2_000

/** What a page of another site may read of an answer. */
const exposed = [
  ...['location', 'link', 'etag', 'x-request-id', 'traceparent'],
  ...['retry-after', 'idempotent-replayed', 'preference-applied'],
]

function mostBytes(config: Config, size: BodySize): number {
  if (size === 'large') return config.httpMaxBytes
  return size === 'input' ? Math.min(config.httpMaxBytes, config.maxInputBytes + 65_536) : 65_536
}

async function serve(
  door: Door,
  one: Operation,
  request: Request,
  params: Record<string, string>,
  limit: number,
): Promise<Reply> {
  const caller = await door.keyring.callerOf(request)
  door.limits.take(caller)
  mustHave(caller, one.scope, one.isForAll === true)
  const given = {
    hf: door.engine(),
    door: { ...door, seal: sealOf(door.seal, caller.tenant) },
    caller,
    request,
    params: check('path', one.params, params),
    query: check('query', one.query, queryOf(request)),
    headers: one.headers ? check('headers', one.headers, Object.fromEntries(request.headers)) : {},
    body: one.body ? check('body', one.body, await bodyOf(one, request, limit)) : undefined,
    /** Made only for those who wait. */
    get signal() {
      return AbortSignal.any([request.signal, door.stopping])
    },
  }
  return one.handle(given)
}

/** What was sent; where nothing has to be said, nothing is as good as an empty object. */
async function bodyOf(one: Operation, request: Request, limit: number): Promise<unknown> {
  return isBodyOptional(one) && isEmpty(request) ? {} : readBody(request, limit)
}

function queryOf(request: Request): Record<string, unknown> {
  // without a prototype, __proto__ is a name like any other
  const query: Record<string, unknown> = Object.create(null)
  const at = request.url.indexOf('?')
  if (at < 0) return query
  // said twice is an array, which no schema takes: better than to guess which one was meant
  for (const [name, value] of new URLSearchParams(request.url.slice(at + 1)))
    query[name] = Object.hasOwn(query, name) ? [query[name], value].flat() : value
  return query
}

const nobody: Record<string, unknown> = {}

function check(where: string, schema: z.ZodType | undefined, given: unknown): unknown {
  if (!schema) {
    const [odd] = Object.keys(given ?? nobody)
    if (odd === undefined) return given
    throw refused([{ path: `${where}.${odd.slice(0, 100)}`, message: 'is not known here' }])
  }
  const checked = schema.safeParse(given)
  if (checked.success) return checked.data
  throw refused(
    checked.error.issues
      .slice(0, 20)
      .map(({ path, message }) => ({ path: [where, ...path].join('.').slice(0, 300), message: message.slice(0, 300) })),
  )
}

function refused(issues: { path: string; message: string }[]): HoldfastError {
  const told = issues.slice(0, 5).map(({ path, message }) => `${path}: ${message}`)
  return new HoldfastError('request_invalid', `The request does not fit: ${told.join('; ')}.`, { details: { issues } })
}

const shapes = operations.map(({ method, path }) => ({
  method,
  shape: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}/?$`),
}))

function nothingThere(method: string, path: string): HoldfastError {
  const allowed = shapes.filter(({ shape }) => shape.test(path)).map((one) => one.method.toUpperCase())
  if (allowed.length === 0)
    return new HoldfastError('route_not_found', 'There is nothing at that path. /docs lists all operations.')
  const allow = [...new Set(allowed)].join(', ')
  return new HoldfastError('method_not_allowed', `That path takes ${allow}, not ${method.slice(0, 20)}.`, {
    details: { allow },
  })
}

/** Gives an answer what every answer has, and turns whatever is thrown into a problem. */
async function answer(door: Door, request: Request, route: string, give: () => Promise<Reply>): Promise<Response> {
  const requestId = requestIdOf(request)
  const sinceMs = performance.now()
  let reply: Reply
  try {
    reply = await give()
  } catch (error) {
    reply = problemOf(error, requestId)
    if (reply.status >= 500 && !(error instanceof HoldfastError && error.status === 503))
      door.log.error(
        { err: error, requestId, method: request.method, path: new URL(request.url).pathname },
        'a request failed',
      )
  }
  const { status, body } = reply
  // HEAD is answered without the body: a stream that nobody will read must not wait for a reader
  if (request.method === 'HEAD' && body instanceof ReadableStream) await body.cancel()
  const method = methods.has(request.method) ? request.method : 'other'
  door.meter.answered({ route, method, status, ms: performance.now() - sinceMs })
  const trace = request.headers.get('traceparent')
  const headers = { 'cache-control': 'no-store', ...reply.headers, ...everyAnswer, 'x-request-id': requestId }
  return new Response(body, { status, headers: isTraceparent(trace) ? { ...headers, traceparent: trace } : headers })
}

/** Others are counted as one, or anybody could make series without end. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'])

function requestIdOf(request: Request): string {
  const given = request.headers.get('x-request-id') ?? request.headers.get('x-correlation-id')
  return given !== null && /^[\w.:/+=-]{1,128}$/.test(given) ? given : randomUUID()
}
