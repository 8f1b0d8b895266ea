import { HoldfastError } from '../errors/errors.ts'
import type { Ask } from './ask.ts'

/** The JSON in the body of a request, if it is that and not larger than allowed. Reads no further than the limit. */
export async function readBody(request: Ask, mostBytes: number): Promise<unknown> {
  const type = request.headers.get('content-type')
  if (!isJson(type))
    throw new HoldfastError(
      'content_type_unsupported',
      `Send the body as application/json, not ${type === null ? 'without a type' : `as ${JSON.stringify(type.slice(0, 100))}`}.`,
    )
  const told = Number(request.headers.get('content-length') ?? 0)
  if (told > mostBytes) throw tooLarge(mostBytes)
  const text = await readText(request, mostBytes)
  try {
    return JSON.parse(text)
  } catch {
    // not the parser's own message, which repeats what was sent
    throw new HoldfastError(
      'body_malformed',
      text === '' ? 'The body is empty; send JSON.' : 'The body is not well-formed JSON.',
    )
  }
}

/** Whether a request comes without a body. */
export function isEmpty({ headers }: Ask): boolean {
  if (headers.get('transfer-encoding') !== null) return false
  const told = headers.get('content-length')
  return told === '0' || (told === null && headers.get('content-type') === null)
}

function isJson(type: string | null): boolean {
  return type !== null && /^application\/([\w.+-]+\+)?json *(;.*)?$/i.test(type)
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
