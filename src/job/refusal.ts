/** What can't be stored, where it stands, and what to do about it. */
export interface NotStorable {
  path: string
  problem: string
}

/** A key that JavaScript takes for the prototype: whoever copies the object loses it. */
export const unsafeKey = '__proto__'

/** Why a field of that name is refused. */
export const unsafeKeyProblem = 'is a name that JavaScript reserves for the prototype of an object; rename it'

/** What is wrong with a text; undefined if nothing is. */
export function textProblem(text: string): string | undefined {
  if (text.includes('\0')) return 'holds a NUL character (\\u0000), which Postgres refuses; remove it'
  if (!text.isWellFormed())
    return 'holds a lone surrogate, which is no valid text; repair it (String.prototype.toWellFormed)'
  return undefined
}
