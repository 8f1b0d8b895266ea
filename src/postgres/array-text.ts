/**
 * Arrays in the text format of Postgres. The driver would convert every element of an array one by one, which costs more than everything
 * else that a statement about many jobs does in this process.
 */

/** An array of values that need no quotes: ids, numbers and booleans. */
export function plainList(values: readonly (string | number | boolean)[]): string {
  return `{${values.join(',')}}`
}

/** An array of strings and nulls. */
export function textList(values: readonly (string | null)[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : quoted(value))).join(',')}}`
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that JSON escapes differently
const controls = /[\u0000-\u001f]/

/** JSON quotes a string like an array does, unless it contains control characters or lone surrogates, and is many times faster than a replacement. */
function quoted(text: string): string {
  if (!controls.test(text) && text.isWellFormed()) return JSON.stringify(text)
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** An array that is empty if all its elements are null: `unnest` pads an array that is shorter than the others with nulls. */
export function sparseList(values: readonly (string | null)[]): string {
  return values.some((value) => value !== null) ? textList(values) : '{}'
}

/** An array of strings, some of which may be UTF-8 bytes. Those are neither decoded nor quoted: Postgres also accepts arrays in binary. */
export function mixedList(values: readonly (string | Buffer)[]): string | Buffer {
  if (values.every((value) => typeof value === 'string')) return textList(values)
  const parts = [listHead(values.length)]
  for (const value of values) {
    const bytes = typeof value === 'string' ? Buffer.from(value) : value
    parts.push(int32s(bytes.length), bytes)
  }
  return Buffer.concat(parts)
}

const textType = 25

/** The header of an array: one dimension of this length, no nulls, indexed from 1. */
function listHead(length: number): Buffer {
  return int32s(1, 0, textType, length, 1)
}

function int32s(...values: number[]): Buffer {
  const bytes = Buffer.allocUnsafe(4 * values.length)
  for (const [index, value] of values.entries()) bytes.writeInt32BE(value, 4 * index)
  return bytes
}
