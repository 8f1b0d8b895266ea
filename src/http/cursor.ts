import { HoldfastError } from '../errors/errors.ts'
import type { CursorTokens } from './cursor-token.ts'

/** The position that a cursor stands for; undefined without a cursor. Throws if the cursor is forged or belongs to another list. */
export async function positionIn(
  cursorTokens: CursorTokens,
  which: string,
  cursor: string | undefined,
): Promise<string | undefined> {
  if (cursor === undefined) return undefined
  const opened = await cursorTokens.open(cursor)
  if (opened?.startsWith(`${which} `)) return opened.slice(which.length + 1)
  throw new HoldfastError(
    'request_invalid',
    'The cursor does not belong to this list. Pass the `next` value of the previous page, or omit the cursor to start over.',
  )
}
