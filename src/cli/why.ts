import type { Command } from 'commander'
import type { Mended, Why } from '../engine/why.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { looks } from './job-words.ts'
import { pickJob, shortId } from './pick-job.ts'
import { oneLine, paint, print } from './terminal.ts'
import { clockWords, lengthWords } from './time-words.ts'
import { whoAmI } from './who-am-i.ts'
import { sourceTable } from './why-words.ts'

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
      'Say why a job is where it is: what every source says, where they disagree, what happens next, and what would help.',
    )
    .argument('<id>', 'The id of a job, or its last 8 letters.')
    .option('--fix', 'Make the repair that it names, if it is still right.')
    .option('--dry-run', 'Say what --fix would do, and change nothing.')
    .action((word: string, flags: WhyFlags) => sayWhy(word, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast why 01890a5d-ac96-774b-bcce-b302099a8057', 'by its id'],
    ['holdfast why 099a8057 --fix --dry-run', 'what a repair would do'],
    ['holdfast why 099a8057 --fix', 'repair it'],
  ])
}

async function sayWhy(word: string, flags: WhyFlags): Promise<void> {
  const isMending = flags.fix === true || flags.dryRun === true
  const { why, mended } = await withClient(configOf({ ...flags }), async (hf) => {
    const id = await pickJob(hf, word)
    if (!isMending) return { why: await hf.why(id), mended: null }
    const done = await hf.mend(id, { by: whoAmI(), dryRun: flags.dryRun === true })
    return { why: done.why, mended: done }
  })
  if (flags.json) return print(JSON.stringify(mended ?? why, null, 2))
  print(linesOf(why, mended).join('\n'))
}

function linesOf(why: Why, mended: Mended | null): string[] {
  return [
    ...(mended ? [fact('repair', paint(mended.isApplied ? 'green' : 'yellow', mended.sentence)), ''] : []),
    ...headLines(why),
    ...why.disagreements.map((one) => fact('but', paint('yellow', oneLine(one)))),
    '',
    ...sourceTable(why.facts),
    ...snapshotLines(why),
    ...(mended ? [] : repairLines(why)),
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
  lines.push(fact('next', why.next ? `${oneLine(why.next.what)}${byWords(why)}` : 'nothing: it is final'))
  return lines
}

function byWords({ next, at }: Why): string {
  if (!next?.byAt) return ''
  return `, by ${clockWords(next.byAt)} at the latest (in ${lengthWords(next.byAt.getTime() - at.getTime())})`
}

function snapshotLines({ snapshots }: Why): string[] {
  if (snapshots.length === 0) return []
  const lines = snapshots.map(
    ({ at, attempt, event, verdict }) =>
      `  ${at.toISOString()}  ${event.replace(/^job\./, '')} at attempt ${attempt}; right before: ${oneLine(verdict?.sentence ?? 'its facts could not be read')}`,
  )
  return ['', paint('bold', 'when attempts ended badly'), ...lines]
}

function repairLines({ repair, id }: Why): string[] {
  if (!repair) return []
  return ['', fact('repair', repair.sentence), fact('', paint('dim', `$ holdfast why ${shortId(id)} --fix`))]
}
