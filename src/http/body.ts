import { HoldfastError } from '../errors/errors.ts'
import { InexactJson, parseExact, parseSteps } from '../job/exact-json.ts'
import type { Ask } from './ask.ts'
import type { Slices } from './slices.ts'

/** What is read at once; longer bodies are read in slices, and their bytes are counted. */
export const smallBody = 65_536

/** The JSON in the body of a request, if it is that and not larger than allowed. Reads no further than the limit. */
export async function readBody(
  request: Ask,
  mostBytes: number,
  { slices, owner }: { slices: Slices; owner: string },
): Promise<unknown> {
  refuseType(request)
  if (toldBytes(request) > mostBytes) throw tooLarge(mostBytes)
  const text = await readText(request, mostBytes)
  try {
    if (text.length <= smallBody) return parseExact(text, 'body')
    return await slices.run(owner, parseSteps(text, 'body'))
  } catch (error) {
    if (error instanceof InexactJson)
      throw new HoldfastError('not_storable', error.message, { details: { ...error.found } })
    // not the parser's own message, which repeats what was sent
    throw new HoldfastError(
      'body_malformed',
      text === '' ? 'The body is empty; send JSON.' : 'The body is not well-formed JSON.',
    )
  }
}

/** How many bytes a body may turn out to have: as many as it says, or all that are allowed. */
export function expectedBytes(request: Ask, mostBytes: number): number {
  return Math.min(mostBytes, toldBytes(request) || mostBytes)
}

function toldBytes({ headers }: Ask): number {
  return Number(headers.get('content-length') ?? 0)
}

/** Whether a request comes without a body. */
export function isEmpty({ headers }: Ask): boolean {
  if (headers.get('transfer-encoding') !== null) return false
  const told = headers.get('content-length')
  return told === '0' || (told === null && headers.get('content-type') === null)
}

/** Only JSON in UTF-8, as it is: text in another charset would be misread, and packed text could unpack to any size. */
function refuseType({ headers }: Ask): void {
  const type = headers.get('content-type')
  const packed = headers.get('content-encoding')
  const charset = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(type ?? '')?.[1]
  if (type === null || !/^application\/([\w.+-]+\+)?json\s*(;.*)?$/i.test(type))
    throw unsupported(
      `Send the body as application/json, not ${type === null ? 'without a type' : `as ${quoted(type)}`}`,
    )
  if (charset !== undefined && !/^utf-?8$/i.test(charset))
    throw unsupported(`Send the body in UTF-8, not in the charset ${quoted(charset)}`)
  if (packed !== null && !/^\s*identity\s*$/i.test(packed))
    throw unsupported(`Send the body as it is, without the content encoding ${quoted(packed)}`)
}

function unsupported(problem: string): HoldfastError {
  return new HoldfastError('content_type_unsupported', `${problem}.`)
}

function quoted(header: string): string {
  return JSON.stringify(header.slice(0, 100))
}

async function readText(request: Ask, mostBytes: number): Promise<string> {
  try {
    const bytes = await request.read(mostBytes)
    if (bytes === 'too large') throw tooLarge(mostBytes)
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    if (error instanceof HoldfastError) throw error
    throw new HoldfastError('body_malformed', 'The body is not UTF-8, or ended early.', { cause: error })
  }
}

function tooLarge(mostBytes: number): HoldfastError {
  return new HoldfastError(
    'body_too_large',
    `The body is larger than ${mostBytes} bytes, the most that this operation takes. Store large data elsewhere and send a reference.`,
  )
}
