// The plot: a panel for each figure, a bar for each contender, with the range of its rounds as a thin line.
import { figures as allFigures } from './measures.mjs'
import { notesOf, valueText } from './report.mjs'

const panels = [
  'drain1',
  'drain2',
  'bulk',
  'single',
  'pickup50',
  'pickup99',
  'recovery',
  'loaded',
  'oldSnapshot',
  'cpuServer',
  'disk',
]
const width = 960
const labelWidth = 250
const valueWidth = 90
const rowHeight = 18
const barHeight = 12
const barRoom = width - labelWidth - valueWidth - 20

/** The report as an SVG, for light and dark backgrounds. */
export function plotOf(report) {
  const parts = []
  let top = 20
  for (const name of panels.filter((panel) => report.figures[panel])) {
    const { svg, height } = panelOf(name, report, top)
    parts.push(svg)
    top += height
  }
  const notes = notesOf(report).slice(0, 3)
  const foot = notes.map((note, index) =>
    text({ x: 10, y: top + 14 + index * 15, size: 11, body: note, look: 'quiet' }),
  )
  const height = top + 20 + notes.length * 15
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Holdfast and its peers, figure by figure">
<style>
  text { font-family: system-ui, sans-serif; fill: #1f2328 }
  .quiet { fill: #59636e } .ours { fill: #0969da } .theirs { fill: #9aa4af } .range { stroke: #1f2328; stroke-width: 1 } .background { fill: #ffffff }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .quiet { fill: #9198a1 } .ours { fill: #4493f8 } .theirs { fill: #59636e } .range { stroke: #e6edf3 } .background { fill: #0d1117 } }
</style>
<rect class="background" width="${width}" height="${height}"/>
${[...parts, ...foot].join('\n')}
</svg>
`
}

function panelOf(name, { figures, contenders }, top) {
  const figure = allFigures[name]
  const present = contenders.filter(({ id }) => figures[name][id])
  const most = Math.max(...present.map(({ id }) => highestOf(figures[name][id])))
  const scale = (value) => (most === 0 ? 0 : (value / most) * barRoom)
  const head = text({
    x: 10,
    y: top,
    size: 14,
    body: `${figure.title}, ${figure.unit} (${figure.better} is better)`,
    look: 'head',
  })
  const rows = present.map((contender, index) =>
    rowOf({ contender, summarized: figures[name][contender.id], scale, y: top + 10 + index * rowHeight }),
  )
  return { svg: [head, ...rows].join('\n'), height: 10 + present.length * rowHeight + 30 }
}

function rowOf({ contender, summarized, scale, y }) {
  const value = summarized.atLeast ?? summarized.median
  const end = labelWidth + Math.max(1, scale(value))
  const known = summarized.rounds.filter((round) => typeof round === 'number')
  const middle = y + barHeight / 2
  const range =
    known.length > 1 && summarized.atLeast === undefined
      ? `<line class="range" x1="${at(labelWidth + scale(Math.min(...known)))}" x2="${at(labelWidth + scale(Math.max(...known)))}" y1="${middle}" y2="${middle}"/>`
      : ''
  const shownAt = Math.max(end, labelWidth + scale(highestOf(summarized))) + 6
  return [
    text({ x: labelWidth - 8, y: y + 10, size: 11, body: contender.title, anchor: 'end' }),
    `<rect class="${contender.isOurs ? 'ours' : 'theirs'}" x="${labelWidth}" y="${y}" width="${at(end - labelWidth)}" height="${barHeight}"/>`,
    range,
    text({ x: at(shownAt), y: y + 10, size: 11, body: valueText(summarized) }),
  ]
    .filter(Boolean)
    .join('\n')
}

function highestOf(summarized) {
  return Math.max(summarized.atLeast ?? 0, ...summarized.rounds.filter((round) => typeof round === 'number'))
}

function at(value) {
  return Math.round(value * 10) / 10
}

function text({ x, y, size, body, look, anchor }) {
  const weight = look === 'head' ? ' font-weight="600"' : ''
  const quiet = look === 'quiet' ? ' class="quiet"' : ''
  return `<text x="${x}" y="${y}" font-size="${size}"${weight}${quiet}${anchor ? ` text-anchor="${anchor}"` : ''}>${escaped(body)}</text>`
}

function escaped(body) {
  return body.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
