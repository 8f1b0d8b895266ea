import { HoldfastError } from '../errors/errors.ts'
import type { Seal } from './seal.ts'

/** The place that a cursor means; undefined if none was given. One of another list, or that nobody gave out, is refused. */
export async function placeIn(seal: Seal, which: string, cursor: string | undefined): Promise<string | undefined> {
  if (cursor === undefined) return undefined
  const opened = await seal.open(cursor)
  if (opened?.startsWith(`${which} `)) return opened.slice(which.length + 1)
  throw new HoldfastError(
    'request_invalid',
    'The cursor is none of this list. Pass what `next` of the page before said, or begin without one.',
  )
}
