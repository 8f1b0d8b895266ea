import { HoldfastError, messageOf } from '../errors/errors.ts'
import { pause } from '../service/service.ts'
import type { MarkAnswer, Owner, OwnerStatus } from './owner.ts'

/** How to reach an owner over HTTP. */
export interface HttpOwnerOptions {
  /** `GET {base}/executions/{id}` reads, `POST {base}/executions/{id}/fail` marks. */
  base: string
  /** The header that carries the tenant. Default: `x-tenant-id`. */
  tenantHeader?: string
  /** Headers of every request, such as the authorization. */
  headers?: Record<string, string>
  /** What the owner's own status words mean; other words are unknown. Default: `running`, `final` and `gone` mean themselves. */
  statuses?: Record<string, OwnerStatus>
  /** How long one request may take. Default: 1500, so that a read and its retries fit into the setting `ownerTimeoutMs`. */
  timeoutMs?: number
  /** How often a failed read is retried; a mark never is. Default: 2. */
  retries?: number
  /** The wait before the first retry; it doubles with each. Default: 100. */
  retryMs?: number
  /** The largest body that is read. Default: 65,536. */
  maxBytes?: number
}

const own: Record<string, OwnerStatus> = { running: 'running', final: 'final', gone: 'gone' }

type Settings = Required<HttpOwnerOptions>

/** An owner that is asked over HTTP. Reads are retried. Marks never are, because it is unknown what a failed mark has done. */
export function httpOwner(options: HttpOwnerOptions): Owner {
  const settings = settingsOf(options)
  return {
    async read(execution, tenant, { signal }) {
      const request = { path: pathOf(execution), method: 'GET', tenant, signal }
      const answer = await retried(settings, signal, () => send(settings, request))
      const body = bodyOf(answer, 'status', execution)
      const meant = Object.hasOwn(settings.statuses, body.status) ? settings.statuses[body.status] : undefined
      // the HTTP status must agree: a 404 that says "running", or a 401 that says "final", comes from a proxy in between
      if (answer.status !== 200 && !(meant === 'gone' && [404, 410].includes(answer.status)))
        throw failed(`answered ${answer.status}, but with the status ${JSON.stringify(body.status.slice(0, 100))}`)
      return meant ?? body.status
    },
    async markFailed(execution, tenant, reason, { signal }) {
      const sent = JSON.stringify({ reason })
      const request = { path: `${pathOf(execution)}/fail`, method: 'POST', tenant, signal, sent }
      const answer = await send(settings, request)
      const { answer: word } = bodyOf(answer, 'answer', execution)
      if (answer.status !== 200 && word === ('done' satisfies MarkAnswer))
        throw failed(`answered ${answer.status}, but with "done"`)
      return word
    },
  }
}

function settingsOf(options: HttpOwnerOptions): Settings {
  const { base, headers = {}, statuses = own, tenantHeader = 'x-tenant-id' } = options
  const { timeoutMs = 1_500, retries = 2, retryMs = 100, maxBytes = 65_536 } = options
  const url = URL.canParse(base) ? new URL(base) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    throw new HoldfastError(
      'config_invalid',
      `The base of an HTTP owner must be a plain http or https URL, without user, query or fragment, not ${JSON.stringify(base)}.`,
    )
  for (const [name, value, min] of [
    ['timeoutMs', timeoutMs, 1],
    ['retries', retries, 0],
    ['retryMs', retryMs, 0],
    ['maxBytes', maxBytes, 1],
  ] as const)
    if (!Number.isInteger(value) || value < min || value > 2_000_000_000)
      throw new HoldfastError('config_invalid', `${name} of an HTTP owner must be a whole number of at least ${min}.`)
  return {
    base: url.href.replace(/\/+$/, ''),
    headers,
    statuses,
    tenantHeader,
    timeoutMs,
    retries,
    retryMs,
    maxBytes,
  }
}

function pathOf(execution: string): string {
  // URLs drop these two even if they are escaped, and the request would be about something else
  if (execution === '.' || execution === '..')
    throw failed(`cannot be asked about the execution ${JSON.stringify(execution)}, which cannot be part of a URL`)
  return `/executions/${encodeURIComponent(execution)}`
}

interface Request {
  path: string
  method: string
  tenant: string
  signal: AbortSignal
  sent?: string
}

interface HttpAnswer {
  status: number
  text: string
}

/** Sends one request, bounded in time and size. Throws if there is no response, or one that calls for a retry. */
async function send(settings: Settings, { path, method, tenant, signal, sent }: Request): Promise<HttpAnswer> {
  const over = new AbortController()
  const stop = () => over.abort(signal.reason)
  const timer = setTimeout(
    () => over.abort(again(`did not answer within ${settings.timeoutMs} ms`)),
    settings.timeoutMs,
  )
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    const response = await fetch(settings.base + path, {
      method,
      // a redirect would send the tenant and the credentials to another host
      redirect: 'manual',
      signal: over.signal,
      headers: headersOf(settings, tenant, sent !== undefined),
      ...(sent === undefined ? {} : { body: sent }),
    })
    const text = await bounded(response, settings.maxBytes, over)
    if (response.status >= 500 || response.status === 429) throw again(`answered ${response.status}`)
    return { status: response.status, text }
  } catch (error) {
    if (over.signal.aborted) throw over.signal.reason
    if (error instanceof HoldfastError) throw error
    throw again(`could not be reached: ${causeOf(error)}`, error)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

/** Set one by one: two spellings of the same name would be sent as one header with both values, and the tenant would be wrong. */
function headersOf(settings: Settings, tenant: string, hasBody: boolean): Headers {
  const headers = new Headers({ accept: 'application/json' })
  if (hasBody) headers.set('content-type', 'application/json')
  for (const [name, value] of Object.entries(settings.headers)) headers.set(name, value)
  headers.set(settings.tenantHeader, tenant)
  return headers
}

async function bounded(response: Response, maxBytes: number, over: AbortController): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) over.abort(failed(`answered with more than ${maxBytes} bytes`))
    over.signal.throwIfAborted()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/**
 * The body of the owner's response, with its word. It repeats the execution that it is about, so that neither a proxy's page nor a
 * response to another request passes for one.
 */
function bodyOf<Field extends string>(
  { status, text }: HttpAnswer,
  field: Field,
  execution: string,
): Record<Field, string> {
  const body = Object(jsonOf(text)) as Record<string, unknown>
  const word = body[field]
  if (typeof body.execution !== 'string' || typeof word !== 'string')
    throw failed(`answered ${status} with an unexpected body: ${JSON.stringify(text.slice(0, 100))}`)
  if (body.execution !== execution)
    throw failed(
      `was asked about ${JSON.stringify(execution)}, but answered about ${JSON.stringify(body.execution.slice(0, 100))}`,
    )
  if (status !== 200 && !(status >= 400 && status < 500)) throw failed(`answered ${status}`)
  return { [field]: word } as Record<Field, string>
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function retried(settings: Settings, signal: AbortSignal, ask: () => Promise<HttpAnswer>): Promise<HttpAnswer> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      const isWorthIt = error instanceof HoldfastError && error.details?.isTransient === true
      if (!isWorthIt || attempt >= settings.retries) throw error
      await pause(settings.retryMs * 2 ** attempt * (0.75 + Math.random() / 2), signal)
      signal.throwIfAborted()
    }
  }
}

function failed(what: string, cause?: unknown): HoldfastError {
  return new HoldfastError('owner_failed', `The owner ${what}.`, { cause })
}

/** A failure that a retry may solve. */
function again(what: string, cause?: unknown): HoldfastError {
  return new HoldfastError('owner_failed', `The owner ${what}.`, { cause, details: { isTransient: true } })
}

/** What fetch hides behind "fetch failed". */
function causeOf(error: unknown): string {
  return messageOf(error instanceof Error && error.cause instanceof Error ? error.cause : error)
}
