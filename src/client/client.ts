import { operations as table } from './operations.ts'
import type { operations } from './schema.ts'
import { readEvents, type ServerEvent } from './stream.ts'

export type { components } from './schema.ts'
export type { ServerEvent } from './stream.ts'

/** How to reach a Holdfast server. */
export interface ClientOptions {
  /** Its URL, such as http://127.0.0.1:7420. */
  url: string
  /** The API key, `hf_…`. */
  key?: string
  /** Headers for every request. */
  headers?: Record<string, string>
  /** Used instead of the global fetch. */
  fetch?: typeof fetch
}

/** The name of an operation. */
export type OperationName = keyof typeof table & keyof operations

type Parameters<Id extends OperationName> = operations[Id]['parameters']
type Part<Given, Name extends string> = Given extends { [N in Name]: infer P }
  ? { [N in Name]: P }
  : Given extends { [N in Name]?: infer P }
    ? [P] extends [undefined]
      ? unknown
      : { [N in Name]?: P }
    : unknown
type Json = { content: { 'application/json': unknown } }
type JsonOf<Given> = Given extends { content: { 'application/json': infer B } } ? B : never
type Body<Id extends OperationName> = operations[Id] extends { requestBody: Json }
  ? { body: JsonOf<operations[Id]['requestBody']> }
  : operations[Id] extends { requestBody?: infer Maybe }
    ? [NonNullable<Maybe>] extends [never]
      ? unknown
      : { body?: JsonOf<NonNullable<Maybe>> }
    : unknown

/** The arguments of an operation: path, query and header parameters, and the body. */
export type Given<Id extends OperationName> = Part<Parameters<Id>, 'path'> &
  Part<Parameters<Id>, 'query'> &
  Part<Parameters<Id>, 'header'> &
  Body<Id>

type Good = 200 | 201 | 202 | 204 | 304
type DataOf<Response> = Response extends { content: { 'application/json': infer D } } ? D : undefined

/** The result of an operation. The status determines the type of the data. Errors are thrown. */
export type Answer<Id extends OperationName> = {
  [Status in keyof operations[Id]['responses'] & Good]: {
    status: Status
    data: DataOf<operations[Id]['responses'][Status]>
    headers: Headers
  }
}[keyof operations[Id]['responses'] & Good]

type Call<Id extends OperationName> =
  unknown extends Given<Id>
    ? (given?: Record<string, never>, options?: { signal?: AbortSignal }) => Promise<Answer<Id>>
    : Record<string, never> extends Given<Id>
      ? (given?: Given<Id>, options?: { signal?: AbortSignal }) => Promise<Answer<Id>>
      : (given: Given<Id>, options?: { signal?: AbortSignal }) => Promise<Answer<Id>>

/** A client of the HTTP API: one function for each operation. */
export type Client = { readonly [Id in Exclude<OperationName, 'streamEvents'>]: Call<Id> } & {
  /** Streams events as they happen. After a disconnect it resumes where it was, until the signal fires. */
  streamEvents(given?: Given<'streamEvents'>, options?: { signal?: AbortSignal }): AsyncGenerator<ServerEvent>
}

/** An error response of the server. */
export class ApiError extends Error {
  /** The error code, such as `job_not_found`. */
  readonly code: string
  /** The HTTP status. */
  readonly status: number
  /** The id of the request, for the logs of the server. */
  readonly requestId: string | undefined
  /** Further details of the error. */
  readonly details: Record<string, unknown> | undefined
  /** How many seconds to wait before trying again, if the server says so. */
  readonly retryAfter: number | undefined

  constructor(
    status: number,
    problem: { code?: string; detail?: string; requestId?: string; details?: Record<string, unknown> },
    retryAfter?: number,
  ) {
    super(problem.detail ?? `The server answered ${status}.`)
    this.name = 'ApiError'
    this.code = problem.code ?? 'unknown'
    this.status = status
    this.requestId = problem.requestId
    this.details = problem.details
    this.retryAfter = retryAfter
  }
}

interface Loose {
  path?: Record<string, unknown>
  query?: Record<string, unknown>
  header?: Record<string, unknown>
  body?: unknown
}

/** Creates a client. It needs only fetch, so it also runs in browsers and edge runtimes. */
export function createClient(options: ClientOptions): Client {
  const client: Record<string, unknown> = {}
  for (const name of Object.keys(table) as OperationName[])
    client[name] = (given: Loose = {}, { signal }: { signal?: AbortSignal } = {}) => call(options, name, given, signal)
  client.streamEvents = (given: Loose = {}, { signal }: { signal?: AbortSignal } = {}) =>
    readEvents((lastId, ending) => {
      const header = {
        ...given.header,
        ...(lastId === undefined ? {} : { 'last-event-id': lastId }),
        accept: 'text/event-stream',
      }
      return send(options, 'streamEvents', { ...given, header }, ending)
    }, signal)
  return client as Client
}

async function call(options: ClientOptions, name: OperationName, given: Loose, signal?: AbortSignal): Promise<unknown> {
  const response = await send(options, name, given, signal)
  const text = await response.text()
  return { status: response.status, data: text === '' ? undefined : JSON.parse(text), headers: response.headers }
}

/** Sends a request. Throws the problem if it fails. */
async function send(
  options: ClientOptions,
  name: OperationName,
  given: Loose,
  signal?: AbortSignal,
): Promise<Response> {
  const { method, path } = table[name]
  const filled = path.replace(/\{(\w+)\}/g, (_, part: string) => encodeURIComponent(String(given.path?.[part])))
  const url = new URL(options.url.replace(/\/$/, '') + filled)
  for (const [key, value] of Object.entries(given.query ?? {}))
    if (value !== undefined) url.searchParams.set(key, String(value))
  const headers: Record<string, string> = { ...options.headers }
  if (options.key !== undefined) headers.authorization = `Bearer ${options.key}`
  for (const [key, value] of Object.entries(given.header ?? {})) if (value !== undefined) headers[key] = String(value)
  if (given.body !== undefined) headers['content-type'] = 'application/json'
  const response = await (options.fetch ?? fetch)(url, {
    method,
    headers,
    ...(given.body === undefined ? {} : { body: JSON.stringify(given.body) }),
    ...(signal === undefined ? {} : { signal }),
  })
  if (response.ok || response.status === 304) return response
  throw await problemOf(response)
}

async function problemOf(response: Response): Promise<ApiError> {
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  const problem = await response.json().catch(() => ({}))
  return new ApiError(response.status, problem as object, Number.isNaN(retryAfter) ? undefined : retryAfter)
}
