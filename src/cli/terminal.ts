import { randomInt } from 'node:crypto'
import { stripVTControlCharacters } from 'node:util'
import { printable, printableLine } from '../errors/printable.ts'

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36 } as const

/** A color or style of text. */
export type Look = keyof typeof codes

/** Where text goes: a terminal, a file or a pipe. */
export interface Target {
  isTTY?: boolean
  columns?: number
}

/** Whether to use colors: only on a terminal, and not if NO_COLOR is set. */
export function hasColors(target: Target, env: NodeJS.ProcessEnv = process.env): boolean {
  return target.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
}

/** Paints text for standard output. */
export function paint(look: Look, text: string, target: Target = process.stdout): string {
  return hasColors(target) && text !== '' ? `${color(codes[look])}${text}${color(0)}` : text
}

/** A secret mark in our own color codes, so that color codes in text from outside are not passed on. */
const ourMark = randomInt(100_000_000, 1_000_000_000)
const ours = new RegExp(`(\\u001b\\[${ourMark};\\d+m)`)

function color(code: number): string {
  return `\u001b[${ourMark};${code}m`
}

/** Removes all control sequences from text except our own colors. Everything that commands print goes through here. */
export function forTerminal(text: string): string {
  return text
    .split(ours)
    .map((piece) => (ours.test(piece) ? piece.replace(`${ourMark};`, '') : printable(piece)))
    .join('')
}

/** Prints a line of data to stdout. */
export function print(line = ''): void {
  process.stdout.write(`${forTerminal(line)}\n`)
}

/** Prints a message to stderr, so that a pipe does not swallow it. */
export function complain(line: string): void {
  process.stderr.write(`${forTerminal(line)}\n`)
}

/** Shows progress on a terminal, replacing what was shown before. */
export function progress(line: string): void {
  if (process.stderr.isTTY)
    process.stderr.write(`\r\u001b[2K${forTerminal(fitted(line, (process.stderr.columns ?? 80) - 1))}`)
}

/** Text from outside on one line, without control sequences. */
export function oneLine(text: string): string {
  return printableLine(stripVTControlCharacters(text))
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
// the blocks that terminals draw two cells wide: Hangul, CJK, kana, full-width forms, emoji
const wide =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]|^\p{Emoji_Presentation}|\ufe0f/u

/** How many terminal cells a text takes. */
export function widthOf(text: string): number {
  let width = 0
  for (const { segment } of graphemes.segment(stripVTControlCharacters(text)))
    width += wide.test(segment) ? 2 : /^[\p{Mn}\p{Me}\p{Cf}]/u.test(segment) ? 0 : 1
  return width
}

/** Truncates plain text to that many cells. */
export function fitted(text: string, cells: number): string {
  if (widthOf(text) <= cells) return text
  let kept = ''
  let width = 1 // the ellipsis
  for (const { segment } of graphemes.segment(text)) {
    width += widthOf(segment)
    if (width > cells) break
    kept += segment
  }
  return `${kept}…`
}

/** Pads text with spaces to that many cells. */
export function padded(text: string, cells: number): string {
  return text + ' '.repeat(Math.max(0, cells - widthOf(text)))
}
