/** Characters that control a terminal or reorder text: all control characters except tab and line feed, and Unicode's direction and line controls. */
const steering = '\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069'
const each = new RegExp(`[${steering}]`, 'g')
const runs = new RegExp(`[${steering}\\t\\n]+`, 'g')

/**
 * Text that is safe to print: characters that control a terminal are written as escapes like `\u001b`, so that nothing is lost and JSON
 * keeps its meaning. Everything that is shown on a terminal goes through here.
 */
export function printable(text: string): string {
  return text.replace(each, escaped)
}

/** The same on one line, with spaces instead of escapes. */
export function printableLine(text: string): string {
  return text.replace(runs, ' ').trim()
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
