// Writes the tables, the plot and the figures of a run into the documentation.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { figures as allFigures } from './measures.mjs'
import { plotOf } from './plot.mjs'
import { notesOf, ratioOf, timesText, valueText } from './report.mjs'

const folder = join(import.meta.dirname, '..', '..', 'docs', 'benchmarks')
const columns = ['drain1', 'drain2', 'bulk', 'single', 'pickup50', 'pickup99', 'recovery', 'loaded', 'oldSnapshot']
const costs = ['cpuServer', 'cpuWorker', 'disk', 'mixedSubmit', 'mixedPickup', 'mixedCancel', 'mixedRead']

/** Writes docs/benchmarks/, unless the figures would be misleading. */
export function write(report, tell) {
  if (!report.postgres.isDurable) return tell('Not written: commits were not durable.')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'compare.md'), markdownOf(report))
  writeFileSync(join(folder, 'compare.svg'), plotOf(report))
  writeFileSync(join(folder, 'compare.json'), `${JSON.stringify(report, null, 2)}\n`)
  tell('Wrote compare.md, compare.svg and compare.json to docs/benchmarks/.')
}

/** The page with the tables. */
export function markdownOf(report) {
  return `# Benchmark figures

Written by \`npm run bench -- --write\`. [How it is measured, and what makes it fair](../performance.md).

![Holdfast and its peers, figure by figure](compare.svg)

${notesOf(report).join('\n')}

## Speed

${tableOf(report, columns)}

## Costs and mixed load

${tableOf(report, costs)}

## Holdfast at its defaults, compared with the best of the others

${goalsOf(report)}
`
}

function tableOf({ figures, contenders }, names) {
  const present = names.filter((name) => figures[name])
  const heads = present.map((name) => `${allFigures[name].title}, ${allFigures[name].unit}`)
  const rows = contenders.map(({ id, title }) => [
    title,
    ...present.map((name) => (figures[name][id] ? marked(figures[name][id]) : '–')),
  ])
  return markdownTable(['', ...heads], rows)
}

function marked(summarized) {
  return `${valueText(summarized)}${summarized.isNoisy ? ' ±' : ''}`
}

/** Ratios above 1 are in favor of Holdfast. */
function goalsOf({ figures, contenders }) {
  const onPostgres = contenders.filter(({ isOurs, redis }) => !isOurs && !redis)
  const onRedis = contenders.filter(({ redis }) => redis)
  const rows = [...columns, ...costs]
    .filter((name) => figures[name])
    .map((name) => [
      allFigures[name].title,
      leastRatio(figures[name], onPostgres, allFigures[name]),
      leastRatio(figures[name], onRedis, allFigures[name]),
    ])
  return markdownTable(['times better than', 'the best on Postgres', 'BullMQ on Redis'], rows)
}

function leastRatio(byContender, others, figure) {
  const found = others
    .map(({ id, title }) => ({ title, ...ratioOf(byContender.holdfast, byContender[id], figure) }))
    .filter(({ ratio }) => ratio !== undefined)
    .toSorted((a, b) => a.ratio - b.ratio)[0]
  if (!found) return '–'
  return `${timesText(found)} (${found.title})`
}

function markdownTable(heads, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [line(heads), `|${heads.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n')
}
