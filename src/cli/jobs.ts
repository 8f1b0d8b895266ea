import type { Command } from 'commander'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import { nearest } from '../errors/nearest.ts'
import { timeOfId } from '../job/id.ts'
import { allStates, isState, type State } from '../job/machine.ts'
import type { JobSummary } from '../reads/job.ts'
import type { ListOptions } from '../reads/list-filter.ts'
import type { Page } from '../reads/page.ts'
import { withClient } from './client.ts'
import { knownStages } from './event-lines.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { formatStage, formatState, looks, type StageNames } from './format-job.ts'
import { formatAge, parseSince, parseWhole } from './format-time.ts'
import { type Cell, table } from './table.ts'
import { paint, print, progress } from './terminal.ts'

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
    .description('List jobs, newest first.')
    .option('--state <states>', `Only these states, comma-separated: ${allStates.join(', ')}.`)
    .option('--kind <kind>', 'Only this kind.')
    .option('--tenant <tenant>', 'Only this tenant.')
    .option('--queue <queue>', 'Only this queue.')
    .option('--items', 'Include fan-out items.')
    .option('--since <moment>', 'Only jobs submitted since this time: 2030-01-31T08:00:00Z, or 12h for 12 hours ago.')
    .option('--until <moment>', 'Only jobs submitted before this time; same formats as --since.')
    .option('--limit <number>', 'Number of jobs, up to 1000.', '20')
    .option('--before <id>', 'Only jobs submitted before this one, for the next page.')
    .action((flags: Flags) => listJobs(flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast jobs', 'the latest 20'],
    ['holdfast jobs --state failed,partial', 'jobs that need attention'],
    ['holdfast jobs --kind extract --since 2h', 'submitted in the last two hours'],
    ['holdfast jobs --queue default --items --json', 'as JSON, with fan-out items'],
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
  if (next) print(paint('dim', `For more, add --before ${next}`))
}

/** Reads page by page until enough jobs are found. On a terminal, it shows how far back it has searched. */
async function collect(hf: Holdfast, wanted: ListOptions & { limit: number }): Promise<Page> {
  const jobs: JobSummary[] = []
  let next: Page['next'] = null
  do {
    const behind = next === null ? wanted : { ...wanted, before: next }
    const page = await hf.page({ ...behind, limit: wanted.limit - jobs.length })
    jobs.push(...page.jobs)
    next = page.next
    if (next !== null) progress(`${jobs.length} found; searching further back, at ${timeOfId(next).toISOString()}`)
  } while (jobs.length < wanted.limit && next !== null)
  progress('')
  return { jobs, next }
}

const heads = ['ID', 'KIND', 'STATE', 'STAGE', 'ATTEMPT', 'AGE', 'ERROR']

function rowOf(job: JobSummary, stages: StageNames | undefined): Cell[] {
  return [
    { text: job.id },
    { text: job.kind },
    { text: formatState(job), look: looks[job.state] },
    { text: formatStage(stages, job.stage) },
    { text: String(job.attempt) },
    { text: formatAge(job.submittedAt) },
    { text: job.error?.message ?? '', look: 'dim' },
  ]
}

/** The states in a flag, comma-separated. */
export function statesIn(words: string): State[] {
  return words.split(',').map((part) => {
    const word = part.trim()
    if (isState(word)) return word
    const near = nearest(word, allStates)
    throw new HoldfastError(
      'option_invalid',
      `${JSON.stringify(word)} is not a job state${near ? `; did you mean ${near}?` : '.'} The states are ${allStates.join(', ')}.`,
    )
  })
}
