import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { InexactJson, parseExact } from '../job/exact-json.ts'

/** Reads the input from an argument: JSON, `@file`, or `-` for standard input. */
export async function readInput(word: string | undefined): Promise<unknown> {
  if (word === undefined) return undefined
  const source = word === '-' ? 'standard input' : word.startsWith('@') ? word.slice(1) : 'the argument'
  const json = word === '-' ? await text(process.stdin) : word.startsWith('@') ? await fromFile(source) : word
  try {
    return parseExact(json, 'input')
  } catch (error) {
    if (error instanceof InexactJson)
      throw new HoldfastError('not_storable', error.message, { details: { ...error.found } })
    throw new HoldfastError(
      'option_invalid',
      `The input from ${source} is not valid JSON: ${messageOf(error)}. Quote it for your shell, as in '{"name":"value"}'.`,
      { cause: error },
    )
  }
}

async function fromFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new HoldfastError('option_invalid', `The input file ${path} could not be read: ${messageOf(error)}.`, {
      cause: error,
    })
  }
}
