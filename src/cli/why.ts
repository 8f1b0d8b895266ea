import type { Command } from 'commander'
import type { Repaired, Why } from '../engine/why.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { looks } from './format-job.ts'
import { formatClock, formatDuration } from './format-time.ts'
import { sourceTable } from './format-why.ts'
import { pickJob, shortId } from './pick-job.ts'
import { oneLine, paint, print } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

interface WhyFlags {
  fix?: true
  dryRun?: true
  json?: true
}

/** Adds `holdfast why <id>`. */
export function addWhy(program: Command): void {
  const command = program
    .command('why')
    .description(
      'Explain the state of a job: the facts from every source, contradictions, what happens next, and a possible repair.',
    )
    .argument('<id>', 'Job id, or its last 8 characters.')
    .option('--fix', 'Apply the suggested repair, if it still applies.')
    .option('--dry-run', 'Show what --fix would do, without changing anything.')
    .action((word: string, flags: WhyFlags) => sayWhy(word, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast why 01890a5d-ac96-774b-bcce-b302099a8057', 'by its id'],
    ['holdfast why 099a8057 --fix --dry-run', 'what a repair would do'],
    ['holdfast why 099a8057 --fix', 'repair it'],
  ])
}

async function sayWhy(word: string, flags: WhyFlags): Promise<void> {
  const isRepairing = flags.fix === true || flags.dryRun === true
  const { why, repaired } = await withClient(configOf({ ...flags }), async (hf) => {
    const id = await pickJob(hf, word)
    if (!isRepairing) return { why: await hf.why(id), repaired: null }
    const done = await hf.repair(id, { by: whoAmI(), dryRun: flags.dryRun === true })
    return { why: done.why, repaired: done }
  })
  if (flags.json) return print(JSON.stringify(repaired ?? why, null, 2))
  print(linesOf(why, repaired).join('\n'))
}

function linesOf(why: Why, repaired: Repaired | null): string[] {
  return [
    ...(repaired ? [fact('repair', paint(repaired.isApplied ? 'green' : 'yellow', repaired.sentence)), ''] : []),
    ...headLines(why),
    ...why.disagreements.map((one) => fact('but', paint('yellow', oneLine(one)))),
    '',
    ...sourceTable(why.facts),
    ...snapshotLines(why),
    ...(repaired ? [] : repairLines(why)),
  ]
}

function fact(name: string, value: string): string {
  return `${paint('bold', name.padEnd(7))} ${value}`
}

function headLines(why: Why): string[] {
  const look = why.orphan ? 'yellow' : why.state ? looks[why.state] : 'cyan'
  const lines = [
    fact('why', paint(look, oneLine(why.verdict.sentence))),
    fact('job', `${why.id}, ${paint('dim', why.verdict.code)}`),
  ]
  if (why.orphan) lines.push(fact('orphan', why.orphan))
  lines.push(fact('next', why.next ? `${oneLine(why.next.what)}${formatBy(why)}` : 'nothing: the state is final'))
  return lines
}

function formatBy({ next, at }: Why): string {
  if (!next?.byAt) return ''
  return `, by ${formatClock(next.byAt)} at the latest (in ${formatDuration(next.byAt.getTime() - at.getTime())})`
}

function snapshotLines({ snapshots }: Why): string[] {
  if (snapshots.length === 0) return []
  const lines = snapshots.map(
    ({ at, attempt, event, verdict }) =>
      `  ${at.toISOString()}  ${event.replace(/^job\./, '')} at attempt ${attempt}; just before: ${oneLine(verdict?.sentence ?? 'facts unavailable')}`,
  )
  return ['', paint('bold', 'failed and lost attempts'), ...lines]
}

function repairLines({ repair, id }: Why): string[] {
  if (!repair) return []
  return ['', fact('repair', repair.sentence), fact('', paint('dim', `$ holdfast why ${shortId(id)} --fix`))]
}
