import { createHash } from 'node:crypto'
import type { Ask } from './ask.ts'
import type { Reply } from './operation.ts'

/** JSON with a tag that changes when it does. */
interface Tagged {
  text: string | Uint8Array<ArrayBuffer>
  tag: string
}

/** A body as text with its tag, to be made once where it never changes. */
export function taggedText(body: unknown): Tagged & { text: string } {
  const text = JSON.stringify(body)
  return { text, tag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"` }
}

/** A JSON answer with its tag; 304 without a body if the client knows it. */
export function answerTagged(request: Ask, body: unknown, headers: Record<string, string> = {}): Reply {
  return answerTag(request, taggedText(body), headers)
}

/** The same of a text that was tagged before. */
export function answerTag(request: Ask, { text, tag }: Tagged, headers: Record<string, string> = {}): Reply {
  const known = request.headers.get('if-none-match') ?? ''
  const tags = known.split(',').map((one) => one.trim().replace(/^W\//, ''))
  // kept only by the client itself, and asked about each time
  const always = { etag: tag, 'cache-control': 'private, no-cache', ...headers }
  if (tags.includes(tag) || tags.includes('*')) return { status: 304, headers: always, body: null }
  return { status: 200, headers: { 'content-type': 'application/json', ...always }, body: text }
}
