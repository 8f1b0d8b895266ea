/**
 * Lists as Postgres writes them. The driver would walk every element of an array through its own conversions, which costs more than all
 * else that a statement of many jobs does in this process.
 */

/** A list of what needs no quotes: ids and numbers. */
export function plainList(values: readonly (string | number | boolean)[]): string {
  return `{${values.join(',')}}`
}

/** A list of texts; null stands for one that is missing. */
export function textList(values: readonly (string | null)[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : quoted(value))).join(',')}}`
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: those that JSON writes in a way of its own
const controls = /[\u0000-\u001f]/

/** JSON quotes a text as lists do, unless it holds controls or half a character, and many times as fast as a replacement. */
function quoted(text: string): string {
  if (!controls.test(text) && text.isWellFormed()) return JSON.stringify(text)
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** A list that is empty if all of it is missing: `unnest` fills up what is shorter than the longest of its lists. */
export function sparseList(values: readonly (string | null)[]): string {
  return values.some((value) => value !== null) ? textList(values) : '{}'
}
