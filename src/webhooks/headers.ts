import { HoldfastError } from '../errors/errors.ts'

const maxCount = 20
const maxBytes = 4_096

/** Headers that Holdfast or the connection sets, or that pretend to come from a proxy or a browser. */
const taken = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'cookie2',
  'date',
  'expect',
  'forwarded',
  'host',
  'http2-settings',
  'keep-alive',
  'set-cookie',
  'te',
  'traceparent',
  'tracestate',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'via',
  'x-real-ip',
])
const takenPrefixes = ['webhook-', 'proxy-', 'sec-', 'x-forwarded-']

/** Checks custom headers of deliveries, and returns them with lower-case names. Throws if one is reserved. */
export function checkHeaders(headers: unknown): Record<string, string> {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers))
    throw invalid('The headers of a webhook must be an object that maps names to strings')
  const entries = Object.entries(headers).map(([name, value]) => [checkName(name), checkValue(name, value)] as const)
  if (entries.length > maxCount)
    throw invalid(`A webhook may have at most ${maxCount} custom headers, not ${entries.length}`)
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  if (bytes > maxBytes) throw invalid(`The headers of a webhook may have at most ${maxBytes} bytes, not ${bytes}`)
  const names = new Set(entries.map(([name]) => name))
  if (names.size < entries.length) throw invalid('A webhook header appears twice, with different capitalization')
  return Object.fromEntries(entries)
}

function checkName(given: string): string {
  // checked before it becomes lower case, which would turn the Kelvin sign into a k
  if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}$/.test(given)) throw invalid(`${shown(given)} is not a valid header name`)
  const name = given.toLowerCase()
  if (taken.has(name) || takenPrefixes.some((prefix) => name.startsWith(prefix)))
    throw invalid(`The header ${shown(given)} is set by Holdfast or by the connection; omit it`)
  return name
}

// values are often credentials, so no message repeats one
function checkValue(name: string, value: unknown): string {
  if (typeof value !== 'string') throw invalid(`The value of the header ${shown(name)} must be a string`)
  if (!/^[\t\x20-\x7e]*$/.test(value) || value.trim() !== value)
    throw invalid(
      `The value of the header ${shown(name)} may contain only printable ASCII, without leading or trailing spaces`,
    )
  return value
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 100))
}

function invalid(sentence: string): HoldfastError {
  return new HoldfastError('webhook_header_invalid', `${sentence}.`)
}
