/**
 * An operation of the HTTP API, declared once: the router, validation, the OpenAPI document, the browsable docs, the generated client and the fuzz
 * test all derive from the list in operations.ts.
 */

import type { Holdfast } from '../engine/engine.ts'
import type { ErrorCode } from '../errors/errors.ts'
import type { Scope } from '../keys/keys.ts'
import type { Caller } from './caller.ts'
import type { Gateway } from './gateway.ts'
import type { HttpRequest } from './request.ts'
import type { z } from './zod.ts'

/** How large a body may be: a few fields, one input, or many inputs or outputs. */
export type BodySize = 'small' | 'input' | 'large'

/** What an operation returns with one status. */
export interface Answer {
  about: string
  /** The schema of a JSON body. Without it, there is no body, or `type` is its content type. */
  schema?: z.ZodType
  type?: string
  headers?: Record<string, string>
}

/** A call of an operation, with everything validated. */
export interface Call<P = unknown, Q = unknown, H = unknown, B = unknown> {
  hf: Holdfast
  gateway: Gateway
  caller: Caller
  params: P
  query: Q
  headers: H
  body: B
  /** The whole request, for what no schema covers. */
  request: HttpRequest
  /** Whether the body may be larger than a small one, so that the request makes room for small ones. */
  isLarge: boolean
  /** Yields to other requests in the middle of long work. */
  rest(): Promise<void>
  /** Fires when the client has disconnected or the server stops. An operation that waits then returns what it has. */
  signal: AbortSignal
}

/** One operation. */
export interface Operation<
  P extends z.ZodType = z.ZodType,
  Q extends z.ZodType = z.ZodType,
  H extends z.ZodType = z.ZodType,
  B extends z.ZodType = z.ZodType,
> {
  /** The name of the operation in the document and of the method in the client. */
  id: string
  method: 'get' | 'post' | 'patch' | 'delete'
  /** With parameters in braces, as in `/v1/jobs/{id}`. */
  path: string
  tag: string
  summary: string
  about?: string
  /** The scope that a key needs. */
  scope: Scope
  /** Whether it requires a key for all tenants, because what it shows or changes does not belong to one tenant. */
  isForAll?: boolean
  /** Whether it reads many rows: few of these run at once, and tenants take turns. */
  isScan?: boolean
  params?: P
  query?: Q
  headers?: H
  body?: B
  bodySize?: BodySize
  /** What is validated of the body beforehand, if the handler validates the rest in small steps. Default: all of it. */
  outerBody?: z.ZodType
  /** Whether inputs in a long body may be RawJson, which the handler parses only if it needs to. */
  leavesInputs?: boolean
  answers: Record<number, Answer>
  /** Its own errors, besides those that every operation can return. */
  problems?: readonly ErrorCode[]
  handle(call: Call<z.output<P>, z.output<Q>, z.output<H>, z.output<B>>): Promise<Reply>
}

/** Declares an operation, so that its handler knows the types of its schemas. */
export function operation<P extends z.ZodType, Q extends z.ZodType, H extends z.ZodType, B extends z.ZodType>(
  declared: Operation<P, Q, H, B>,
): Operation {
  return declared as unknown as Operation
}

/** Whether the body may be omitted, because all its fields are optional. */
export function isBodyOptional({ body }: Operation): boolean {
  return body?.safeParse({}).success === true
}

/** What a handler returns. The response is made from it once all headers are known, because changing a response costs far more. */
export interface Reply {
  status: number
  headers: Record<string, string>
  /** Bytes if many responses share them. */
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null
}

/** A JSON response. */
export function json(status: number, body: unknown, headers: Record<string, string> = {}): Reply {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }
}

/** A response without a body. */
export function nothing(headers: Record<string, string> = {}): Reply {
  return { status: 204, headers, body: null }
}
