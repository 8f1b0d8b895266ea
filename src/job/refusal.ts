/** Something that can't be stored: its path, what is wrong with it, and what to do. */
export interface NotStorable {
  path: string
  problem: string
}

/** A key that JavaScript takes for the prototype: a copy of the object loses it. */
export const unsafeKey = '__proto__'

/** Why a field with this name is refused. */
export const unsafeKeyProblem = 'is a name that JavaScript reserves for the prototype of an object; rename it'

/** What is wrong with a string; undefined if nothing is. */
export function textProblem(text: string): string | undefined {
  if (text.includes('\0')) return 'contains a NUL character (\\u0000), which Postgres refuses; remove it'
  if (!text.isWellFormed())
    return 'contains a lone surrogate, which is not valid text; fix it with String.prototype.toWellFormed'
  return undefined
}
