import { HoldfastError } from './errors.ts'
import { nearest } from './nearest.ts'

/** The names of the options of a call. The type makes sure that the list is complete. */
export type Known<T> = { readonly [Name in keyof T]-?: true }

/** The end of a sentence about the first unknown option, if there is one. A misspelled option would otherwise be ignored. */
export function unknownOption(given: object, known: object): string | undefined {
  // without building a list: a bulk submit checks each of its jobs
  for (const name in given)
    if (!Object.hasOwn(known, name) && (given as Record<string, unknown>)[name] !== undefined)
      return `${JSON.stringify(name)}${suggestion(name, Object.keys(known))}`
  return undefined
}

/** Throws if there is an unknown option. A value that is not an object is for others to refuse. */
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
