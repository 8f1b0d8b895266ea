import { monitorEventLoopDelay } from 'node:perf_hooks'
import { version } from '../engine/work.ts'
import { type ErrorCode, errorCodes, HoldfastError } from '../errors/errors.ts'
import { stalledOf } from '../service/vitals.ts'
import type { Ask } from './ask.ts'
import { Buckets } from './buckets.ts'
import { mustHave } from './caller.ts'
import { docsPage } from './docs-page.ts'
import type { Door } from './door.ts'
import { answerTag, taggedText } from './etag.ts'
import { networkOf } from './network.ts'
import { json, type Reply } from './operation.ts'

/** What is no operation, by its path: the document, the docs for people, and what watchmen ask for. */
export function makePages(
  door: Door,
  document: object,
  perSecond: number,
): Record<string, (request: Ask) => Promise<Reply>> {
  const largePage = limitPages(perSecond)
  // as bytes, which all answers share: a text would be copied for each
  const html = Buffer.from(docsPage(document))
  const { text, tag } = taggedText(document)
  const tagged = { text: Buffer.from(text), tag }
  const loop = loopHeartbeat()
  const ready = shared(readyFreshMs, () => readiness(door))
  return {
    '/': async () => json(200, { name: 'holdfast', version, docs: '/docs', openapi: '/openapi.json' }),
    '/openapi.json': largePage(async (request) => answerTag(request, tagged)),
    '/docs': largePage(async () => plain('text/html; charset=utf-8', html)),
    async '/livez'() {
      // of the reaper beside the API, too: a server that lives and does not sweep leaves remote workers without recovery
      const stalled = stalledOf(engineOf(door)?.pulses() ?? [])
      const isLive = loop.isBeating() && stalled.length === 0
      return json(isLive ? 200 : 503, { isLive, loopDelayMs: loop.delayMs(), stalled })
    },
    async '/readyz'() {
      const now = door.stopping.aborted ? stops : await ready()
      return json(now.isReady ? 200 : 503, now)
    },
    async '/metrics'(request) {
      const caller = await door.keyring.callerOf(request)
      door.limits.take(caller)
      mustHave(caller, 'read', true)
      return plain('text/plain; version=0.0.4; charset=utf-8', await door.meter.text(engineOf(door)))
    },
  }
}

const mostAddresses = 10_000
/** For a moment, an address may ask for so many times what it may ask for in a second. */
const burstFactor = 10

/** Large pages need no key, and a few bytes ask for a quarter of a megabyte: so each address gets a few a second. */
function limitPages(perSecond: number) {
  const pages = new Buckets<string>({ perSecond, burst: burstFactor * perSecond, most: mostAddresses })
  return (give: (request: Ask) => Promise<Reply>) => async (request: Ask) => {
    const retryAfterMs = request.address === null ? 0 : pages.take(networkOf(request.address))
    if (retryAfterMs === 0) return give(request)
    throw new HoldfastError('rate_limited', `More than ${perSecond} pages a second from this address; slow down.`, {
      details: { retryAfterMs },
    })
  }
}

function plain(type: string, body: NonNullable<Reply['body']>): Reply {
  return { status: 200, headers: { 'content-type': type }, body }
}

function engineOf(door: Door) {
  try {
    return door.engine()
  } catch {
    return undefined // none yet, which the metrics say
  }
}

/** Anybody may ask whether a server is ready, as often as they like: the database is asked once a second at most. */
const readyFreshMs = 1_000

/** An answer that all who ask within so many milliseconds share. */
function shared<T>(freshMs: number, ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined
  let untilMs = Number.POSITIVE_INFINITY
  return () => {
    if (answer && performance.now() < untilMs) return answer
    untilMs = Number.POSITIVE_INFINITY
    answer = ask().finally(() => {
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

const stops: Readiness = { isReady: false, code: 'not_running', reason: 'The server stops.' }

/** Whether this server can do its work: the database answers, and its schema is the one that this program knows. */
async function readiness(door: Door): Promise<Readiness> {
  try {
    await within(2_000, door.engine().ready())
    return { isReady: true, code: null, reason: null }
  } catch (error) {
    // what the code means, and not the message: anybody may ask, and it names the database
    const code = error instanceof HoldfastError ? (error.details?.code ?? error.code) : 'internal'
    return { isReady: false, code: code as ErrorCode, reason: errorCodes[code as ErrorCode].meaning }
  }
}

function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new HoldfastError('database_timeout', 'The database did not answer in time.')), ms)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

const beatMs = 500
const deadMs = 10_000

/** Liveness is the heartbeat of the loop itself, and never that of the database: to start a process anew mends no database. */
function loopHeartbeat(): { isBeating(): boolean; delayMs(): number } {
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  let beatAtMs = performance.now()
  setInterval(() => {
    beatAtMs = performance.now()
  }, beatMs).unref()
  return {
    isBeating: () => performance.now() - beatAtMs < deadMs,
    delayMs: () => Math.round(delay.percentile(99) / 1e4) / 100,
  }
}
