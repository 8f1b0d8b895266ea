// One POST, and its result. The receiver is not trusted: it may lead us into our own network, never end, respond byte by byte, send gigabytes,
// or redirect. So each request has one deadline for everything, reads little, follows no redirects, and connects only to addresses that the
// policy has checked. The status decides as soon as it arrives. A body that breaks off later changes nothing, because the receiver has already
// said whether it accepted the event.
//
// A refused IP address in the URL is permanent, because the URL itself is wrong. A name that resolves to refused addresses is worth a retry:
// DNS can be fixed without changing the webhook, and a retry costs only a lookup.
import type { Readable } from 'node:stream'
import type { Agent, Dispatcher } from 'undici'
import { HoldfastError } from '../errors/errors.ts'
import type { AddressPolicy } from './address.ts'
import { Agents } from './agents.ts'
import { type PostResult, resultOf } from './answer.ts'
import { isMalformed, sentenceOf } from './failure.ts'
import { RefusedNameError } from './lookup.ts'
import type { NameResolver } from './resolver.ts'
import { checkWebhookUrl } from './target.ts'

export type { PostResult } from './answer.ts'

/** What a poster needs. */
export interface PosterOptions {
  policy: AddressPolicy
  /** How long one request may take, from the lookup to the end of the body. */
  timeoutMs: number
  /** How much of a response to read. Default: 65,536. */
  maxResponseBytes?: number
  /** Resolves names. It is closed with the poster. */
  resolver: NameResolver
  /** Additional certificate authorities, as PEM. */
  ca?: string[]
  /** Called if a name resolves only to addresses that are not allowed; the result of the request does not say so. */
  onRefused?: (error: RefusedNameError) => void
}

/** One request. The body is sent as UTF-8, exactly as it was signed. */
export interface Post {
  /** Tenants never share connections or lookups. */
  tenant: string
  url: string
  headers: Record<string, string>
  body: string
  /** When it is sent by the database clock, in milliseconds since 1970. */
  atMs: number
}

/** Sends requests, and keeps connections open for a few seconds. */
export interface Poster {
  /** Sends one request. Rejects if its signal fires before there is a status, with the signal's reason, or if the poster is closed. */
  post(post: Post, signal?: AbortSignal): Promise<PostResult>
  /** Resolves when all requests have ended and all connections are closed. */
  close(): Promise<void>
}

/** Makes a poster with its own connections. */
export function makePoster(options: PosterOptions): Poster {
  const agents = new Agents(options)
  const underWay = new Set<Promise<PostResult>>()
  let closing: Promise<void> | undefined
  return {
    async post(post, signal) {
      if (closing) throw new HoldfastError('not_running', 'The webhook sender is closed.')
      const posting = agents.use(post.tenant, (agent) => send(agent, options, post, signal))
      underWay.add(posting)
      return posting.finally(() => underWay.delete(posting))
    },
    close() {
      closing ??= Promise.allSettled(underWay).then(() => {
        options.resolver.close()
        return agents.close()
      })
      return closing
    },
  }
}

async function send(agent: Agent, options: PosterOptions, post: Post, signal?: AbortSignal): Promise<PostResult> {
  signal?.throwIfAborted()
  const startedAt = performance.now()
  const ms = () => Math.round(performance.now() - startedAt)
  const { policy, timeoutMs, maxResponseBytes = 65_536 } = options
  const over = new AbortController()
  const stop = () => over.abort(signal?.reason)
  const timer = setTimeout(() => over.abort(new Error('The request timed out.')), timeoutMs)
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const url = checkWebhookUrl(post.url, policy)
    const answer = await untilOver(over.signal, ask(agent, url, post, over.signal))
    const body = await readUpTo(maxResponseBytes, answer.body)
    return resultOf({ url, status: answer.statusCode, headers: answer.headers, body, ms: ms(), atMs: post.atMs + ms() })
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof RefusedNameError) options.onRefused?.(error)
    if (error instanceof HoldfastError) return { kind: 'permanent', reason: error.message, ms: ms() }
    if (over.signal.aborted)
      return { kind: 'retry', reason: `The receiver did not respond within ${timeoutMs} ms.`, ms: ms() }
    return { kind: isMalformed(error) ? 'permanent' : 'retry', reason: sentenceOf(error), ms: ms() }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
  }
}

async function ask(agent: Agent, url: URL, post: Post, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
  const body = Buffer.from(post.body, 'utf8')
  const { request } = await import('undici')
  return request(url, { dispatcher: agent, method: 'POST', headers: post.headers, body, signal })
}

/** Rejects as soon as the signal fires: a request that is not connected yet would react only later. */
function untilOver<T>(signal: AbortSignal, awaited: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    awaited.then(resolve, reject)
  })
}

/** The beginning of a body. The receiver, the deadline or our limit may cut it. */
async function readUpTo(maxBytes: number, body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  // a body that is destroyed before its end emits an error
  body.on('error', () => {})
  try {
    for await (const chunk of body) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= maxBytes) break
    }
  } catch {
    // the status is known and decides
  }
  return Buffer.concat(chunks).subarray(0, maxBytes)
}
