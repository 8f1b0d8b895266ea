import { fitted, type Look, oneLine, padded, paint, type Target, widthOf } from './terminal.ts'

/** One cell: its text and its color. */
export interface Cell {
  text: string
  look?: Look
}

const gap = '  '
const leastForLast = 12

/** A table with aligned columns. On a narrow terminal the last column is cut; in a pipe nothing is. */
export function table(
  heads: readonly string[],
  rows: readonly (readonly Cell[])[],
  target: Target = process.stdout,
): string[] {
  const clean = rows.map((row) => row.map(({ text, look }) => ({ text: oneLine(text), look })))
  const widths = heads.map((head, index) =>
    Math.max(widthOf(head), ...clean.map((row) => widthOf(row[index]?.text ?? ''))),
  )
  const cut = roomForLast(widths, target)
  const line = (cells: readonly Cell[]) =>
    cells
      .map(({ text, look }, index) => {
        const isLast = index === heads.length - 1
        const shown = isLast ? fitted(text, cut) : padded(text, widths[index] ?? 0)
        return look ? paint(look, shown, target) : shown
      })
      .join(gap)
      .trimEnd()
  return [line(heads.map((text) => ({ text, look: 'bold' }))), ...clean.map(line)]
}

function roomForLast(widths: readonly number[], target: Target): number {
  if (!target.isTTY || !target.columns) return Number.POSITIVE_INFINITY
  const others = widths.slice(0, -1).reduce((sum, width) => sum + width + gap.length, 0)
  return Math.max(leastForLast, target.columns - others)
}
