import { createHash } from 'node:crypto'
import type { Ask } from './ask.ts'
import type { Reply } from './operation.ts'

/** A JSON answer with a tag that changes when it does; 304 without a body if the client knows it. */
export function answerTagged(request: Ask, body: unknown, headers: Record<string, string> = {}): Reply {
  const text = JSON.stringify(body)
  const tag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`
  const known = request.headers.get('if-none-match') ?? ''
  const tags = known.split(',').map((one) => one.trim().replace(/^W\//, ''))
  // kept only by the client itself, and asked about each time
  const always = { etag: tag, 'cache-control': 'private, no-cache', ...headers }
  if (tags.includes(tag) || tags.includes('*')) return { status: 304, headers: always, body: null }
  return { status: 200, headers: { 'content-type': 'application/json', ...always }, body: text }
}
