import type { Config } from '../config/config.ts'
import type { SettingName } from '../config/settings.ts'
import { boundOf, crowd, ladder, laterOf, type Rung } from '../reaper/recovery-bound.ts'
import { formatDuration } from './format-time.ts'
import { table } from './table.ts'
import { paint } from './terminal.ts'

/** The settings that the ladder depends on, and those that are constrained by them. */
export const ladderSettings: readonly SettingName[] = [
  'heartbeatMs',
  'lostAfterMs',
  'leaseMs',
  'abortMarginMs',
  'sweepMs',
  'leaderLeaseMs',
  'leaderRenewMs',
  'pollMs',
  'holdMs',
  'timeoutGraceMs',
]

/** How soon a lost job moves again, one line for each rung. */
export function ladderLines(config: Config): string[] {
  const rungs = ladder(config)
  const width = Math.max(...rungs.map(({ rung }) => rung.length))
  const longest = Math.max(...rungs.map((one) => formatWithin(one).length))
  return [
    ...rungs.map((one) => `${one.rung.padEnd(width)}  ${formatWithin(one).padEnd(longest)}  ${paint('dim', one.when)}`),
    paint('dim', crowdWords),
  ]
}

const many = crowd.toLocaleString('en')
/** How many lost jobs the bound covers. */
const crowdWords = `for up to ${many} jobs lost at once; each additional ${many} add about ${formatDuration(laterOf(2 * crowd))}`

/** The whole ladder, with how each bound is computed. */
export function ladderTable(config: Config): string[] {
  const rows = ladder(config).map((one) => [
    { text: one.rung },
    { text: formatWithin(one) },
    { text: one.made },
    { text: one.when },
  ])
  return [
    `A job that loses its worker is recovered within ${formatDuration(boundOf(config))}. By cause, fastest first:`,
    '',
    ...table(['RUNG', 'WITHIN', 'MADE OF', 'WHEN'], rows),
    '',
    `This bound holds ${crowdWords}.`,
    `Settings: ${ladderSettings.map((name) => `${name} ${config[name]}`).join(', ')}.`,
  ]
}

/** The same as data. */
export function ladderFacts(config: Config) {
  return {
    boundMs: boundOf(config),
    ladder: ladder(config),
    settings: Object.fromEntries(ladderSettings.map((name) => [name, config[name]])),
  }
}

function formatWithin({ boundMs, made }: Rung): string {
  // each stage has its own timeout, so this rung counts from there
  return made.startsWith('timeout') ? `timeout + ${formatDuration(boundMs)}` : formatDuration(boundMs)
}
