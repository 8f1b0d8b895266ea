import type { Config } from '../config/config.ts'
import type { SettingName } from '../config/settings.ts'
import { boundOf, ladder, type Rung } from '../reaper/bound.ts'
import { table } from './table.ts'
import { paint } from './terminal.ts'
import { lengthWords } from './time-words.ts'

/** The settings that the ladder is made of, and those that must fit to them. */
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

/** How soon a lost job moves again, in one line for each rung. */
export function ladderLines(config: Config): string[] {
  const rungs = ladder(config)
  const width = Math.max(...rungs.map(({ rung }) => rung.length))
  const longest = Math.max(...rungs.map((one) => withinWords(one).length))
  return [
    ...rungs.map((one) => `${one.rung.padEnd(width)}  ${withinWords(one).padEnd(longest)}  ${paint('dim', one.when)}`),
    paint('dim', crowdWords),
  ]
}

/** For how many jobs the bound is. */
const crowdWords = 'for up to 1,000 jobs lost at once; every further 1,000 take about a second more'

/** The whole ladder with what it is made of. */
export function ladderTable(config: Config): string[] {
  const rows = ladder(config).map((one) => [
    { text: one.rung },
    { text: withinWords(one) },
    { text: one.made },
    { text: one.when },
  ])
  return [
    `A job whose worker is lost moves again within ${lengthWords(boundOf(config))}. By what is lost, fastest first:`,
    '',
    ...table(['RUNG', 'WITHIN', 'MADE OF', 'WHEN'], rows),
    '',
    `That is ${crowdWords}.`,
    `Under these settings: ${ladderSettings.map((name) => `${name} ${config[name]}`).join(', ')}.`,
  ]
}

/** The same for a program. */
export function ladderFacts(config: Config) {
  return {
    boundMs: boundOf(config),
    ladder: ladder(config),
    settings: Object.fromEntries(ladderSettings.map((name) => [name, config[name]])),
  }
}

function withinWords({ boundMs, made }: Rung): string {
  // each stage has a time-out of its own, so this rung counts from there
  return made.startsWith('time-out') ? `time-out + ${lengthWords(boundMs)}` : lengthWords(boundMs)
}
