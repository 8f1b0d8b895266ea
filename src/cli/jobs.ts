import type { Command } from 'commander'
import type { Holdfast } from '../engine/engine.ts'
import type { ListOptions } from '../engine/given.ts'
import type { JobSummary } from '../engine/job.ts'
import type { Page } from '../engine/page.ts'
import { HoldfastError } from '../errors/errors.ts'
import { nearest } from '../errors/nearest.ts'
import { timeOfId } from '../job/id.ts'
import { allStates, isState, type State } from '../job/machine.ts'
import { withClient } from './client.ts'
import { knownStages } from './event-lines.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { looks, type StageNames, stageWords, stateWords } from './job-words.ts'
import { type Cell, table } from './table.ts'
import { paint, print, progress } from './terminal.ts'
import { ageWords, parseSince, parseWhole } from './time-words.ts'

interface Flags {
  state?: string
  kind?: string
  tenant?: string
  queue?: string
  since?: string
  until?: string
  limit: string
  before?: string
  items?: true
  json?: true
}

/** Adds `holdfast jobs`. */
export function addJobs(program: Command): void {
  const command = program
    .command('jobs')
    .description('List jobs, the latest first.')
    .option('--state <states>', `Only these, with commas between: ${allStates.join(', ')}.`)
    .option('--kind <kind>', 'Only jobs of this kind.')
    .option('--tenant <tenant>', 'Only jobs of this tenant.')
    .option('--queue <queue>', 'Only jobs of this queue.')
    .option('--items', 'The items of fan-outs too.')
    .option('--since <moment>', 'Only jobs submitted from then on: 2030-01-31T08:00:00Z, or 12h for that long ago.')
    .option('--until <moment>', 'Only jobs submitted before then.')
    .option('--limit <number>', 'How many, up to 1000.', '20')
    .option('--before <id>', 'Only jobs submitted before this one: the next page.')
    .action((flags: Flags) => listJobs(flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast jobs', 'the latest 20'],
    ['holdfast jobs --state failed,partial', 'what needs a look'],
    ['holdfast jobs --kind extract --since 2h', 'of the last two hours'],
    ['holdfast jobs --queue default --items --json', 'for a program, with the items of fan-outs'],
  ])
}

async function listJobs(flags: Flags): Promise<void> {
  const config = configOf({ ...flags })
  const { kind, tenant, queue, before } = flags
  const limit = parseWhole('--limit', flags.limit)
  const wanted = {
    kind,
    tenant,
    queue,
    before,
    limit,
    items: flags.items === true,
    ...(flags.state && { state: statesIn(flags.state) }),
    ...(flags.since && { since: parseSince('--since', flags.since) }),
    ...(flags.until && { until: parseSince('--until', flags.until) }),
  }
  const { jobs, next, stages } = await withClient(config, async (hf) => {
    const page = await collect(hf, wanted)
    const stagesOf = knownStages(hf)
    const stages: (StageNames | undefined)[] = []
    if (!flags.json) for (const job of page.jobs) stages.push(await stagesOf(job.kind, job.tenant))
    return { ...page, stages }
  })
  if (flags.json) return print(JSON.stringify({ jobs, next }, null, 2))
  if (jobs.length === 0) return print('No jobs match. Submit one with `holdfast submit <kind> [json]`.')
  for (const line of table(
    heads,
    jobs.map((job, index) => rowOf(job, stages[index])),
  ))
    print(line)
  if (next) print(paint('dim', `More: the same with --before ${next}`))
}

/** Page by page, until enough are found. On a terminal it tells how far back it has looked. */
async function collect(hf: Holdfast, wanted: ListOptions & { limit: number }): Promise<Page> {
  const jobs: JobSummary[] = []
  let next: Page['next'] = null
  do {
    const behind = next === null ? wanted : { ...wanted, before: next }
    const page = await hf.page({ ...behind, limit: wanted.limit - jobs.length })
    jobs.push(...page.jobs)
    next = page.next
    if (next !== null) progress(`${jobs.length} found; looking further back, at ${timeOfId(next).toISOString()}`)
  } while (jobs.length < wanted.limit && next !== null)
  progress('')
  return { jobs, next }
}

const heads = ['ID', 'KIND', 'STATE', 'STAGE', 'ATTEMPT', 'AGE', 'ERROR']

function rowOf(job: JobSummary, stages: StageNames | undefined): Cell[] {
  return [
    { text: job.id },
    { text: job.kind },
    { text: stateWords(job), look: looks[job.state] },
    { text: stageWords(stages, job.stage) },
    { text: String(job.attempt) },
    { text: ageWords(job.submittedAt) },
    { text: job.error?.message ?? '', look: 'dim' },
  ]
}

function statesIn(words: string): State[] {
  return words.split(',').map((part) => {
    const word = part.trim()
    if (isState(word)) return word
    const near = nearest(word, allStates)
    throw new HoldfastError(
      'option_invalid',
      `${JSON.stringify(word)} is not a state of a job${near ? `; did you mean ${near}?` : '.'} The states are ${allStates.join(', ')}.`,
    )
  })
}
