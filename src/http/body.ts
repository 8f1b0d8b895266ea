import { isUtf8 } from 'node:buffer'
import { HoldfastError } from '../errors/errors.ts'
import { InexactJson, parseExact, parseSteps } from '../job/exact-json.ts'
import type { HttpRequest } from './request.ts'
import type { Slices } from './slices.ts'

/** Bodies up to this size are parsed at once. Longer ones are parsed in slices, and their bytes are counted. */
export const smallBody = 65_536

/** Reads the body of a request as JSON. Throws if it is anything else, or too large; reads no further than the limit. */
export async function readBody(
  request: HttpRequest,
  mostBytes: number,
  { slices, owner, leavesInputs }: { slices: Slices; owner: string; leavesInputs: boolean },
): Promise<unknown> {
  refuseType(request)
  if (toldBytes(request) > mostBytes) throw tooLarge(mostBytes)
  const bytes = await readBytes(request, mostBytes)
  try {
    if (bytes.length <= smallBody) return parseExact(bytes.toString('utf8'), 'body')
    return await slices.run(owner, parseSteps(bytes, 'body', { leavesInputs }))
  } catch (error) {
    if (error instanceof InexactJson)
      throw new HoldfastError('not_storable', error.message, { details: { ...error.found } })
    // not the parser's message, which repeats what was sent
    throw new HoldfastError(
      'body_malformed',
      bytes.length === 0 ? 'The body is empty; send JSON.' : 'The body is not well-formed JSON.',
    )
  }
}

/** How many bytes a body may have: what the request announces, or the limit. */
export function expectedBytes(request: HttpRequest, mostBytes: number): number {
  return Math.min(mostBytes, toldBytes(request) || mostBytes)
}

function toldBytes({ headers }: HttpRequest): number {
  return Number(headers.get('content-length') ?? 0)
}

/** Whether a request has no body. */
export function isEmpty({ headers }: HttpRequest): boolean {
  if (headers.get('transfer-encoding') !== null) return false
  const told = headers.get('content-length')
  return told === '0' || (told === null && headers.get('content-type') === null)
}

/** Accepts only uncompressed JSON in UTF-8: text in another charset would be misread, and compressed text could expand to any size. */
function refuseType({ headers }: HttpRequest): void {
  const type = headers.get('content-type')
  const packed = headers.get('content-encoding')
  const charset = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(type ?? '')?.[1]
  if (type === null || !/^application\/([\w.+-]+\+)?json\s*(;.*)?$/i.test(type))
    throw unsupported(
      `Send the body as application/json, not ${type === null ? 'without a content type' : `as ${quoted(type)}`}`,
    )
  if (charset !== undefined && !/^utf-?8$/i.test(charset))
    throw unsupported(`Send the body in UTF-8, not in the charset ${quoted(charset)}`)
  if (packed !== null && !/^\s*identity\s*$/i.test(packed))
    throw unsupported(`Send the body without the content encoding ${quoted(packed)}`)
}

function unsupported(problem: string): HoldfastError {
  return new HoldfastError('content_type_unsupported', `${problem}.`)
}

function quoted(header: string): string {
  return JSON.stringify(header.slice(0, 100))
}

async function readBytes(request: HttpRequest, mostBytes: number): Promise<Buffer> {
  try {
    const bytes = await request.read(mostBytes)
    if (bytes === 'too large') throw tooLarge(mostBytes)
    return utf8Of(bytes)
  } catch (error) {
    if (error instanceof HoldfastError) throw error
    throw new HoldfastError('body_malformed', 'The body is not valid UTF-8, or it ended early.', { cause: error })
  }
}

const byteOrderMark = Buffer.from('\ufeff')

/** The same bytes without a byte order mark. Throws if they are not UTF-8. Several times as fast as a TextDecoder with `fatal`. */
function utf8Of(body: Uint8Array): Buffer {
  if (!isUtf8(body)) throw new TypeError('The bytes are not UTF-8.')
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark) ? bytes.subarray(byteOrderMark.length) : bytes
}

function tooLarge(mostBytes: number): HoldfastError {
  return new HoldfastError(
    'body_too_large',
    `The body is larger than ${mostBytes} bytes, the limit for this operation. Store large data elsewhere and send a reference.`,
  )
}
