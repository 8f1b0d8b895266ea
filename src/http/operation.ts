/**
 * An operation of the HTTP API, declared once: router, checks, OpenAPI document, browsable docs, generated client and the fuzz test all
 * derive from the list in operations.ts.
 */

import type { Holdfast } from '../engine/engine.ts'
import type { Scope } from '../engine/keys.ts'
import type { ErrorCode } from '../errors/errors.ts'
import type { Ask } from './ask.ts'
import type { Caller } from './caller.ts'
import type { Door } from './door.ts'
import type { z } from './zod.ts'

/** How large a body may be: a few fields, one input, or many inputs or outputs. */
export type BodySize = 'small' | 'input' | 'large'

/** What an operation answers with one status. */
export interface Answer {
  about: string
  /** What the JSON body looks like; without it there is no body, or `type` says of what kind it is. */
  schema?: z.ZodType
  type?: string
  headers?: Record<string, string>
}

/** What a handler is given: all of it checked. */
export interface Given<P = unknown, Q = unknown, H = unknown, B = unknown> {
  hf: Holdfast
  door: Door
  caller: Caller
  params: P
  query: Q
  headers: H
  body: B
  /** The whole request, for what no schema covers. */
  request: Ask
  /** Fires when the client has gone or the server stops: whoever waits answers what there is. */
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
  /** What a key must be allowed to do. */
  scope: Scope
  /** Whether only keys for all tenants may: what it shows or changes is nobody's alone. */
  isForAll?: boolean
  params?: P
  query?: Q
  headers?: H
  body?: B
  bodySize?: BodySize
  answers: Record<number, Answer>
  /** Errors of its own, beside those that every operation can answer with. */
  problems?: readonly ErrorCode[]
  handle(given: Given<z.output<P>, z.output<Q>, z.output<H>, z.output<B>>): Promise<Reply>
}

/** Declares an operation, so that its handler knows the types of its schemas. */
export function operation<P extends z.ZodType, Q extends z.ZodType, H extends z.ZodType, B extends z.ZodType>(
  declared: Operation<P, Q, H, B>,
): Operation {
  return declared as unknown as Operation
}

/** Whether the body may be left out: nothing in it has to be said. */
export function isBodyOptional({ body }: Operation): boolean {
  return body?.safeParse({}).success === true
}

/** What a handler answers. A response is made of it in one piece, once all headers are known, because to change one costs far more. */
export interface Reply {
  status: number
  headers: Record<string, string>
  /** Bytes where many answers share them. */
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null
}

/** A JSON answer. */
export function json(status: number, body: unknown, headers: Record<string, string> = {}): Reply {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }
}

/** An answer without a body. */
export function nothing(headers: Record<string, string> = {}): Reply {
  return { status: 204, headers, body: null }
}
