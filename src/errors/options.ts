import { HoldfastError } from './errors.ts'
import { nearest } from './nearest.ts'

/** The options that a call takes. Typed by what it takes, so that none is forgotten and none is left over. */
export type Known<T> = { readonly [Name in keyof T]-?: true }

/** The end of a sentence about the first option that a call does not take, if there is one: misspelt, it would be ignored. */
export function unknownOption(given: object, known: object): string | undefined {
  // without a list of its own: a bulk submit asks for each job
  for (const name in given)
    if (!Object.hasOwn(known, name) && (given as Record<string, unknown>)[name] !== undefined)
      return `${JSON.stringify(name)}${suggestion(name, Object.keys(known))}`
  return undefined
}

/** Throws if there is an option that a call does not take. What is no object is for others to refuse. */
export function refuseUnknown(what: string, given: unknown, known: object): void {
  if (typeof given !== 'object' || given === null) return
  const unknown = unknownOption(given, known)
  if (unknown) throw new HoldfastError('option_invalid', `${what} has no option ${unknown}`)
}

function suggestion(name: string, known: readonly string[]): string {
  const word = name.toLowerCase()
  const near =
    nearest(name, known) ??
    known.find((one) => one.toLowerCase().startsWith(word) || word.startsWith(one.toLowerCase()))
  return near === undefined ? `; it takes ${known.join(', ')}.` : `; did you mean ${near}?`
}
