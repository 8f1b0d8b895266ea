import { createHash } from 'node:crypto'
import type { Reply } from './operation.ts'
import type { HttpRequest } from './request.ts'

/** JSON with its entity tag. */
interface Tagged {
  text: string | Uint8Array<ArrayBuffer>
  tag: string
}

/** A body as JSON with its entity tag. Make it once if the body never changes. */
export function taggedText(body: unknown): Tagged & { text: string } {
  const text = JSON.stringify(body)
  return { text, tag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"` }
}

/** A JSON response with its entity tag; 304 without a body if the client has it already. */
export function answerTagged(request: HttpRequest, body: unknown, headers: Record<string, string> = {}): Reply {
  return answerTag(request, taggedText(body), headers)
}

/** The same for a body that was tagged before. */
export function answerTag(request: HttpRequest, { text, tag }: Tagged, headers: Record<string, string> = {}): Reply {
  const known = request.headers.get('if-none-match') ?? ''
  const tags = known.split(',').map((one) => one.trim().replace(/^W\//, ''))
  // cached only by the client itself, and revalidated each time
  const always = { etag: tag, 'cache-control': 'private, no-cache', ...headers }
  if (tags.includes(tag) || tags.includes('*')) return { status: 304, headers: always, body: null }
  return { status: 200, headers: { 'content-type': 'application/json', ...always }, body: text }
}
