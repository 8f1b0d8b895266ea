// One POST, and what came of it. The receiver is not trusted: it may lead us into our own network, never end, drip,
// send gigabytes, or point elsewhere. So each post has one deadline over everything, reads little, follows nothing, and
// connects only to addresses that the policy has seen. As soon as the status is there it decides; a body that breaks off
// later changes nothing, since the receiver has said already whether it took the event.
//
// A refused IP address in the URL is permanent, for the URL itself is wrong. A name that resolves to refused addresses is
// worth a retry: DNS can be mended without anybody touching the webhook, and a retry costs nothing but a look-up.
import type { Readable } from 'node:stream'
import { rootCertificates } from 'node:tls'
import type { Agent, Dispatcher } from 'undici'
import { HoldfastError } from '../errors/errors.ts'
import type { AddressPolicy } from './address.ts'
import { type PostResult, resultOf } from './answer.ts'
import { isMalformed, sentenceOf } from './failure.ts'
import { pinnedLookup, type Resolve } from './lookup.ts'
import { checkWebhookUrl } from './target.ts'

export type { PostResult } from './answer.ts'

/** What a poster needs to know. */
export interface PosterOptions {
  policy: AddressPolicy
  /** How long one post may take, from the look-up to the end of the body. */
  timeoutMs: number
  /** How much of an answer is read. Default: 65,536. */
  maxResponseBytes?: number
  /** Finds the addresses of a name. Default: the system does. */
  resolve?: Resolve
  /** Certificate authorities of your own, as PEM, beside those that Node brings along. */
  ca?: string[]
}

/** One request. The body is sent as UTF-8, byte by byte as it was signed. */
export interface Post {
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
  // loaded with the first post: it would cost every process a tenth of a second, and most never send one
  let agent: Promise<Agent> | undefined
  const agentHere = () => {
    agent ??= agentOf(options)
    return agent
  }
  const underWay = new Set<Promise<PostResult>>()
  let closing: Promise<void> | undefined
  return {
    async post(post, signal) {
      if (closing) throw new HoldfastError('not_running', 'The poster of webhooks was closed.')
      const posting = send(agentHere, options, post, signal)
      underWay.add(posting)
      return posting.finally(() => underWay.delete(posting))
    },
    close() {
      closing ??= Promise.allSettled(underWay).then(async () => (await agent)?.destroy())
      return closing
    },
  }
}

async function agentOf({ policy, timeoutMs, resolve, ca }: PosterOptions): Promise<Agent> {
  const { Agent } = await import('undici')
  return new Agent({
    connect: {
      lookup: pinnedLookup(policy, resolve),
      timeout: timeoutMs,
      ...(ca ? { ca: [...rootCertificates, ...ca] } : {}),
    },
    connections: 512,
    keepAliveTimeout: 4_000,
    keepAliveMaxTimeout: 10_000,
    maxHeaderSize: 16_384,
    // the deadline of the post rules; these would only end it with another sentence
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

async function send(
  agentHere: () => Promise<Agent>,
  options: PosterOptions,
  post: Post,
  signal?: AbortSignal,
): Promise<PostResult> {
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
    const answer = await untilOver(over.signal, ask(agentHere, url, post, over.signal))
    const body = await readUpTo(maxResponseBytes, answer.body)
    return resultOf({ url, status: answer.statusCode, headers: answer.headers, body, ms: ms(), atMs: post.atMs + ms() })
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof HoldfastError) return { kind: 'permanent', reason: error.message, ms: ms() }
    if (over.signal.aborted) return { kind: 'retry', reason: `No answer came within ${timeoutMs} ms.`, ms: ms() }
    return { kind: isMalformed(error) ? 'permanent' : 'retry', reason: sentenceOf(error), ms: ms() }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
  }
}

async function ask(
  agentHere: () => Promise<Agent>,
  url: URL,
  post: Post,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  const body = Buffer.from(post.body, 'utf8')
  const [{ request }, dispatcher] = await Promise.all([import('undici'), agentHere()])
  return request(url, { dispatcher, method: 'POST', headers: post.headers, body, signal })
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
