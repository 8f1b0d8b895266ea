// One POST, and what came of it. The receiver is not trusted: it may lead us into our own network, never end, drip,
// send gigabytes, or point elsewhere. So each post has one deadline over everything, reads little, follows nothing, and
// connects only to addresses that the policy has seen. As soon as the status is there it decides; a body that breaks off
// later changes nothing, since the receiver has said already whether it took the event.
//
// A refused IP address in the URL is permanent, for the URL itself is wrong. A name that resolves to refused addresses is
// worth a retry: DNS can be mended without anybody touching the webhook, and a retry costs nothing but a look-up.
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

/** What a poster needs to know. */
export interface PosterOptions {
  policy: AddressPolicy
  /** How long one post may take, from the look-up to the end of the body. */
  timeoutMs: number
  /** How much of an answer is read. Default: 65,536. */
  maxResponseBytes?: number
  /** Finds the addresses of names. Closed with the poster. */
  resolver: NameResolver
  /** Certificate authorities of your own, as PEM, beside those that Node brings along. */
  ca?: string[]
  /** Told that a name leads only to where webhooks may not go; the result of the post does not say so. */
  onRefused?: (error: RefusedNameError) => void
}

/** One request. The body is sent as UTF-8, byte by byte as it was signed. */
export interface Post {
  /** Whose it is: connections and look-ups are never shared between tenants. */
  tenant: string
  url: string
  headers: Record<string, string>
  body: string
  /** When it is sent, in milliseconds since 1970 by the clock of the database. */
  atMs: number
}

/** Sends posts, and keeps connections for a few seconds. */
export interface Poster {
  /** Sends one post. Rejects if its signal fires before there is a status, with the signal's reason, or if the poster is closed. */
  post(post: Post, signal?: AbortSignal): Promise<PostResult>
  /** Resolves when no post is under way and no connection is left. */
  close(): Promise<void>
}

/** A poster with connections of its own. */
export function makePoster(options: PosterOptions): Poster {
  const agents = new Agents(options)
  const underWay = new Set<Promise<PostResult>>()
  let closing: Promise<void> | undefined
  return {
    async post(post, signal) {
      if (closing) throw new HoldfastError('not_running', 'The poster of webhooks was closed.')
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
  const timer = setTimeout(() => over.abort(new Error('The time is over.')), timeoutMs)
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
    if (over.signal.aborted) return { kind: 'retry', reason: `No answer came within ${timeoutMs} ms.`, ms: ms() }
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

/** What was awaited, or the reason why it is over. A request hears its signal only when it is connected; we do not wait for that. */
function untilOver<T>(signal: AbortSignal, awaited: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    awaited.then(resolve, reject)
  })
}

/** The beginning of a body, however it goes on: it may be cut by the receiver, by the deadline, or by us. */
async function readUpTo(maxBytes: number, body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  // destroyed before its end, it reports that as an error
  body.on('error', () => {})
  try {
    for await (const chunk of body) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= maxBytes) break
    }
  } catch {
    // the status is known, and decides
  }
  return Buffer.concat(chunks).subarray(0, maxBytes)
}
