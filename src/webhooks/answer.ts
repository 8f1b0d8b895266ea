import { dayMs } from '../errors/duration.ts'

const excerptLength = 500
/** Statuses below 500 that mean "later" and not "never". */
const later = new Set([408, 425, 429])

/** The result of a request: the receiver accepted it, may accept it later, or never will. */
export type PostResult =
  | { kind: 'delivered'; status: number; ms: number }
  | { kind: 'retry'; reason: string; status?: number; retryAfterMs?: number; excerpt?: string; ms: number }
  | { kind: 'permanent'; reason: string; status?: number; excerpt?: string; ms: number }

/** The response of a receiver. */
export interface Answer {
  url: URL
  status: number
  headers: Record<string, string | string[] | undefined>
  /** The part of the body that was read. */
  body: Buffer
  ms: number
  /** When it arrived, in milliseconds since 1970. */
  atMs: number
}

/** What a response means for its delivery. The status decides, whether or not the body was complete. */
export function resultOf({ url, status, headers, body, ms, atMs }: Answer): PostResult {
  if (status >= 200 && status < 300) return { kind: 'delivered', status, ms }
  const excerpt = excerptOf(body)
  const said = excerpt === undefined ? { status, ms } : { status, excerpt, ms }
  if (status >= 300 && status < 400)
    return { kind: 'permanent', reason: redirectSentence(url.href, headers.location), ...said }
  const reason = `The receiver answered ${status}.`
  if (status < 500 && !later.has(status)) return { kind: 'permanent', reason, ...said }
  const retryAfterMs = retryAfterOf(headers['retry-after'], atMs)
  return retryAfterMs === undefined
    ? { kind: 'retry', reason, ...said }
    : { kind: 'retry', reason, retryAfterMs, ...said }
}

/** The delay that a `Retry-After` header asks for, at most a day; undefined if it is missing or invalid. */
export function retryAfterOf(header: string | string[] | undefined, nowMs: number): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? ''
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, dayMs)
  // an HTTP date; Date.parse alone would also find one in "call me in 2030"
  const isDate = /^(mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(day)?, \d\d[ -]\w{3}[ -]\d\d(\d\d)? [\d:]{8} gmt$/i
  const atMs = isDate.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(atMs) ? undefined : Math.min(Math.max(atMs - nowMs, 0), dayMs)
}

/** The beginning of a body, in characters that are safe for any screen, log and database; undefined if there are none. */
export function excerptOf(body: Buffer): string | undefined {
  // a character may take several bytes, and one that is cut in two becomes U+FFFD
  const text = body.subarray(0, excerptLength * 16).toString('utf8')
  const plain = text.replace(/[\s\p{C}\ufffd]+/gu, ' ').trim()
  return [...plain].slice(0, excerptLength).join('').trim() || undefined
}

function redirectSentence(base: string, location: string | string[] | undefined): string {
  const text = Array.isArray(location) ? location[0] : location
  const advice = 'Redirects are not followed'
  if (text === undefined || !URL.canParse(text, base)) return `${advice}.`
  const { protocol, origin, pathname } = new URL(text, base)
  if (!/^https?:$/.test(protocol)) return `${advice}; it points to a ${protocol.slice(0, 40)} address.`
  // without user, query and fragment, which may contain secrets
  return `${advice}; it points to ${`${origin}${pathname}`.slice(0, 300)}.`
}
