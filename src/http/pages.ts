import { version } from '../config/version.ts'
import { type ErrorCode, errorCodes, HoldfastError } from '../errors/errors.ts'
import { within } from '../service/service.ts'
import { livenessOf, type Pulse } from '../service/vitals.ts'
import { Buckets } from './buckets.ts'
import { mustHave } from './caller.ts'
import { docsPage } from './docs-page.ts'
import { answerTag, taggedText } from './etag.ts'
import type { Gateway } from './gateway.ts'
import { networkOf } from './network.ts'
import { json, type Reply } from './operation.ts'
import type { HttpRequest } from './request.ts'

/** Pages that are not operations, by path: the OpenAPI document, the docs, probes and metrics. */
export function makePages(
  gateway: Gateway,
  document: object,
  perSecond: number,
): Record<string, (request: HttpRequest) => Promise<Reply>> {
  const largePage = limitPages(perSecond)
  // as bytes, which all responses share; text would be copied for each
  const html = Buffer.from(docsPage(document))
  const { text, tag } = taggedText(document)
  const tagged = { text: Buffer.from(text), tag }
  const eventLoop = watchEventLoop()
  const ready = shared(readyFreshMs, () => readiness(gateway))
  return {
    '/': async () => json(200, { name: 'holdfast', version, docs: '/docs', openapi: '/openapi.json' }),
    '/openapi.json': largePage(async (request) => answerTag(request, tagged)),
    '/docs': largePage(async () => plain('text/html; charset=utf-8', html)),
    async '/livez'() {
      // including the reaper that runs next to the API: if it does not sweep, remote workers have no recovery
      const liveness = livenessOf([eventLoop(), ...(engineOf(gateway)?.pulses() ?? [])])
      return json(liveness.isAlive ? 200 : 503, liveness)
    },
    async '/readyz'() {
      const now = gateway.stopping.aborted ? stops : await ready()
      return json(now.isReady ? 200 : 503, now)
    },
    async '/metrics'(request) {
      const caller = await gateway.keyring.callerOf(request)
      gateway.limits.take(caller)
      mustHave(caller, 'read', true)
      return plain('text/plain; version=0.0.4; charset=utf-8', await gateway.meter.text(engineOf(gateway)))
    },
  }
}

const mostAddresses = 10_000
/** The burst of an address, as a multiple of its rate per second. */
const burstFactor = 10

/** Large pages need no key, and a request of a few bytes returns a quarter of a megabyte, so each address gets only a few per second. */
function limitPages(perSecond: number) {
  const pages = new Buckets<string>({ perSecond, burst: burstFactor * perSecond, most: mostAddresses })
  return (give: (request: HttpRequest) => Promise<Reply>) => async (request: HttpRequest) => {
    const retryAfterMs = request.address === null ? 0 : pages.take(networkOf(request.address))
    if (retryAfterMs === 0) return give(request)
    throw new HoldfastError('rate_limited', `This address exceeds ${perSecond} pages per second; slow down.`, {
      details: { retryAfterMs },
    })
  }
}

function plain(type: string, body: NonNullable<Reply['body']>): Reply {
  return { status: 200, headers: { 'content-type': type }, body }
}

function engineOf(gateway: Gateway) {
  try {
    return gateway.engine()
  } catch {
    return undefined // not connected yet, which the metrics show
  }
}

/** Anyone may ask whether a server is ready, as often as they like, so the database is asked at most once per second. */
const readyFreshMs = 1_000

/** Shares an answer among all requests within that time. */
function shared<T>(freshMs: number, request: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined
  let untilMs = Number.POSITIVE_INFINITY
  return () => {
    if (answer && performance.now() < untilMs) return answer
    untilMs = Number.POSITIVE_INFINITY
    answer = request().finally(() => {
      untilMs = performance.now() + freshMs
    })
    return answer
  }
}

interface Readiness {
  isReady: boolean
  code: string | null
  reason: string | null
}

const stops: Readiness = { isReady: false, code: 'not_running', reason: 'The server is stopping.' }

/** Whether this server can do its work: the database answers, and has the schema of this version. */
async function readiness(gateway: Gateway): Promise<Readiness> {
  try {
    if (!(await within(2_000, gateway.engine().ready())))
      throw new HoldfastError('database_timeout', 'The database did not answer in time.')
    return { isReady: true, code: null, reason: null }
  } catch (error) {
    // the meaning of the code and not the message: anyone may ask, and the message names the database
    const code = error instanceof HoldfastError ? (error.details?.code ?? error.code) : 'internal'
    return { isReady: false, code: code as ErrorCode, reason: errorCodes[code as ErrorCode].meaning }
  }
}

const beatMs = 500
const deadMs = 10_000

/** Liveness depends on loops only, never on the database: restarting a process does not fix a database. */
function watchEventLoop(): () => Pulse {
  let beatAtMs = performance.now()
  setInterval(() => {
    beatAtMs = performance.now()
  }, beatMs).unref()
  return () => ({ loop: 'event loop', quietMs: Math.round(performance.now() - beatAtMs), limitMs: deadMs })
}
