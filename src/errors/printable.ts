/** What steers a terminal or reorders text: all controls but tab and line feed, and those of direction and of lines in Unicode. */
const steering = '\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069'
const each = new RegExp(`[${steering}]`, 'g')
const runs = new RegExp(`[${steering}\\t\\n]+`, 'g')

/**
 * Text as it may be printed: what could steer the terminal is written as `\u001b`, so that nothing is lost and JSON stays the same JSON. Everything that people
 * read on a terminal goes through here.
 */
export function printable(text: string): string {
  return text.replace(each, escaped)
}

/** The same on one line, with blanks instead of what is not printed. */
export function printableLine(text: string): string {
  return text.replace(runs, ' ').trim()
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
