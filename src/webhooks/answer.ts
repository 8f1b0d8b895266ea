const dayMs = 86_400_000
const excerptLength = 500
/** Statuses below 500 that mean "later", not "never". */
const later = new Set([408, 425, 429])

/** How a post ended: the receiver took it, it may take it later, or it never will. */
export type PostResult =
  | { kind: 'delivered'; status: number; ms: number }
  | { kind: 'retry'; reason: string; status?: number; retryAfterMs?: number; excerpt?: string; ms: number }
  | { kind: 'permanent'; reason: string; status?: number; excerpt?: string; ms: number }

/** What a receiver has answered. */
export interface Answer {
  url: URL
  status: number
  headers: Record<string, string | string[] | undefined>
  /** As much of the body as was read. */
  body: Buffer
  ms: number
  /** When it came, in milliseconds since 1970. */
  atMs: number
}

/** What an answer means for its delivery. The status decides, whatever became of the body. */
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

/** The wait that a `Retry-After` asks for, a day at most; undefined if it is missing or makes no sense. */
export function retryAfterOf(header: string | string[] | undefined, nowMs: number): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? ''
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, dayMs)
  // a date as HTTP writes it; Date.parse alone would see one in "call me in 2030", too
  const isDate = /^(mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(day)?, \d\d[ -]\w{3}[ -]\d\d(\d\d)? [\d:]{8} gmt$/i
  const atMs = isDate.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(atMs) ? undefined : Math.min(Math.max(atMs - nowMs, 0), dayMs)
}

/** The beginning of a body, in characters that any screen, log and database can hold; undefined if there are none. */
export function excerptOf(body: Buffer): string | undefined {
  // several bytes make a character, and one that is cut in two shows as U+FFFD
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
  // without user, query and fragment: there may be secrets in them
  return `${advice}; it points to ${`${origin}${pathname}`.slice(0, 300)}.`
}
