// The report as text: a block for each figure, with medians, spreads and ratios.
import { figures as allFigures } from './measures.mjs'

/** The whole report as text. */
export function textOf(report) {
  const lines = [
    ...Object.entries(report.figures).flatMap(([name, byContender]) => blockOf(name, byContender, report)),
    ...notesOf(report),
  ]
  return `${lines.join('\n')}\n`
}

/** Sentences on what was measured on which machine, what was left out, and how reliable it is. */
export function notesOf({ machine, versions, postgres, leftOut, scale, figures, commit }) {
  const noisy = Object.values(figures).flatMap((all) => Object.values(all).filter((one) => one?.isNoisy)).length
  const total = Object.values(figures).flatMap((all) => Object.values(all).filter(Boolean)).length
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, ${machine.system}, Node ${machine.node}.`,
    `Postgres ${versions.postgres}${postgres.isOwn ? ' (embedded)' : ''}${versions.redis ? `, Redis ${versions.redis}` : ''}; ` +
      `Holdfast ${versions.holdfast}${commit ? ` (${commit})` : ''}, ${peersOf(versions)}.`,
    `${scale.jobs.toLocaleString('en')} jobs, ${scale.rounds === 1 ? '1 round' : `${scale.rounds} rounds`}; medians. ` +
      `Load of the machine ${machine.load[0]} before, ${machine.loadAfter[0]} after.`,
    ...(postgres.isDurable
      ? []
      : [
          `Not durable: fsync is ${postgres.fsync}, synchronous_commit is ${postgres.synchronous_commit}. The figures on Postgres are meaningless.`,
        ]),
    ...(noisy > 0 ? [`Noisy: ${noisy} of ${total} figures have rounds more than 20 % apart (marked ±).`] : []),
    ...(scale.rounds < 3 ? ['Fewer than three rounds, so the medians mean little.'] : []),
    ...leftOut.map((what) => `Left out: ${what}.`),
  ]
}

function peersOf({ holdfast: _ours, postgres: _postgres, redis: _redis, ...peers }) {
  return Object.entries(peers)
    .map(([name, version]) => `${name} ${version ?? '(not installed)'}`)
    .join(', ')
}

function blockOf(name, byContender, { contenders }) {
  const figure = allFigures[name]
  const ours = byContender.holdfast
  const rows = contenders
    .filter(({ id }) => id in byContender)
    .map(({ id, title, isOurs }) => [
      title,
      valueText(byContender[id]),
      spreadText(byContender[id]),
      isOurs ? '' : ratioText(ours, byContender[id], figure),
    ])
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column].length)))
  return [
    `${figure.title}, ${figure.unit} (${figure.better} is better)`,
    ...rows.map(([title, value, spread, ratio]) =>
      `  ${title.padEnd(widths[0])}  ${value.padStart(widths[1])}  ${spread.padEnd(widths[2])}  ${ratio}`.trimEnd(),
    ),
    '',
  ]
}

/** A figure as text. */
export function valueText(summarized) {
  if (!summarized) return '–'
  if (summarized.atLeast !== undefined) return `> ${summarized.atLeast}`
  return numberText(summarized.median)
}

/** A benchmark has no more than three significant digits. */
export function numberText(value) {
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return String(Number(value.toPrecision(3)))
}

/** The spread of the rounds. */
export function spreadText(summarized) {
  if (!summarized || summarized.atLeast !== undefined || summarized.rounds.length < 2) return ''
  return `${summarized.isNoisy ? '±' : ''}${Math.round(summarized.spread * 100)} %`
}

/** How many times better ours is than another: above 1 is in our favor. */
export function ratioOf(ours, theirs, { better }) {
  if (!ours || !theirs || ours.atLeast !== undefined) return null
  const other = theirs.atLeast ?? theirs.median
  const ratio = better === 'more' ? ours.median / other : other / ours.median
  return Number.isFinite(ratio) ? { ratio, isAtLeast: theirs.atLeast !== undefined } : null
}

function ratioText(ours, theirs, figure) {
  const found = ratioOf(ours, theirs, figure)
  if (!found) return ''
  return `Holdfast ${timesText(found)} ×`
}

/** A ratio as text. */
export function timesText({ ratio, isAtLeast }) {
  return `${isAtLeast ? '> ' : ''}${ratio >= 100 ? Math.round(ratio).toLocaleString('en') : Number(ratio.toPrecision(2))}`
}
