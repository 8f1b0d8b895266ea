import type { Command } from 'commander'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError } from '../errors/errors.ts'
import { isFinal } from '../job/machine.ts'
import type { Job, TimelineEvent } from '../reads/job.ts'
import type { Delivery } from '../webhooks/deliveries.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { type FanOutView, fanOutLines } from './format-fan-out.ts'
import { formatEvent, formatSpan, formatStage, formatState, looks } from './format-job.ts'
import { formatDuration } from './format-time.ts'
import { deliveryTable } from './format-webhook.ts'
import { pickJob } from './pick-job.ts'
import { type Cell, table } from './table.ts'
import { oneLine, paint, print } from './terminal.ts'

/** Adds `holdfast show <id>`. */
export function addShow(program: Command): void {
  const command = program
    .command('show')
    .description('Show one job: its input, stage outputs, fan-out progress, timeline and webhooks.')
    .argument('<id>', 'Job id, or its last 8 characters.')
    .action((word: string, flags: { json?: true }) => show(word, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast show 01890a5d-ac96-774b-bcce-b302099a8057', 'by its id'],
    ['holdfast show 099a8057 --json', 'by the last 8 characters, as JSON'],
  ])
}

async function show(word: string, flags: { json?: true }): Promise<void> {
  const { job, fanOuts, timeline, deliveries } = await withClient(configOf({ ...flags }), async (hf) => {
    const id = await pickJob(hf, word)
    const found = await hf.get(id)
    if (!found) throw new HoldfastError('job_not_found', `There is no job ${id}.`)
    return {
      job: found,
      fanOuts: await viewsOf(hf, found),
      timeline: await hf.timeline(id),
      deliveries: await hf.webhooks.deliveries({ job: id, limit: mostDeliveries }),
    }
  })
  if (flags.json) return print(JSON.stringify({ job, fanOuts, timeline, deliveries }, null, 2))
  const parts = [headLines(job), stageLines(job, fanOuts), timelineLines(job, timeline), deliveryLines(deliveries)]
  print(
    parts
      .filter((lines) => lines.length > 0)
      .map((lines) => lines.join('\n'))
      .join('\n\n'),
  )
}

const mostItems = 5
const mostDeliveries = 50

function deliveryLines(deliveries: Delivery[]): string[] {
  return deliveries.length === 0 ? [] : [paint('bold', 'webhooks'), ...deliveryTable(deliveries)]
}

/** The fan-outs of a job with their stragglers and failures. Most jobs have none. */
async function viewsOf(hf: Holdfast, { id }: Job): Promise<FanOutView[]> {
  const fanOuts = await hf.fanOuts(id)
  if (fanOuts.length === 0) return []
  const stragglers = await hf.stragglers(id, { limit: mostItems })
  const views: FanOutView[] = []
  for (const fan of fanOuts) {
    const after = { stage: fan.stage, position: -1 }
    const failures = fan.failed > 0 ? await hf.items(id, { state: 'failed', after, limit: mostItems }) : []
    views.push({
      ...fan,
      stragglers: stragglers.filter(({ stage }) => stage === fan.stage),
      failures: failures.filter(({ stage }) => stage === fan.stage),
    })
  }
  return views
}

function headLines(job: Job): string[] {
  const facts: [string, string | undefined][] = [
    ['job', job.id],
    ['kind', job.kind],
    ['state', `${paint(looks[job.state], formatState(job))}, ${formatSpan(job)}`],
    ['stage', `${formatStage(job.stages, job.stage)}, attempt ${job.attempt}${formatLoss(job)}`],
    ['queue', `${job.queue}, priority ${job.priority}, tenant ${job.tenant}`],
    ['progress', isFinal(job.state) ? undefined : progressBar(job.progress)],
    ['error', job.error ? paint('red', `${job.error.code}: ${oneLine(job.error.message)}`) : undefined],
    ['meta', job.meta ? JSON.stringify(job.meta) : undefined],
    ['input', job.input === null ? undefined : JSON.stringify(job.input)],
  ]
  return facts
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${paint('bold', name.padEnd(9))} ${value}`)
}

function formatLoss({ failures, crashes }: Job): string {
  const words = [failures > 0 && `${failures} failed in this stage`, crashes > 0 && `${crashes} lost their worker`]
  return words
    .filter(Boolean)
    .map((word) => `, ${word}`)
    .join('')
}

const barCells = 24

/** Draws the progress of an attempt. */
export function progressBar(progress: Job['progress']): string | undefined {
  if (!progress) return undefined
  const { done, total, note } = progress
  const said = note ? `  ${oneLine(note)}` : ''
  if (!total) return `${done} done${said}`
  const share = Math.min(1, done / total)
  const full = Math.floor(share * barCells)
  return `${'█'.repeat(full)}${'░'.repeat(barCells - full)} ${done}/${total} (${Math.floor(share * 100)} %)${said}`
}

const mostLines = 16

function stageLines(job: Job, fanOuts: FanOutView[]): string[] {
  // outputs are shown even if the kind is not registered, or no longer has the stage
  const names = [...new Set([...job.stages.map(({ name }) => name), ...Object.keys(job.outputs)])]
  return [paint('bold', 'stages'), ...names.flatMap((name, index) => stagePart(job, name, index, fanOuts))]
}

function stagePart(job: Job, name: string, index: number, fanOuts: FanOutView[]): string[] {
  const optional = job.stages[index]?.optional ? ' (optional)' : ''
  const output = job.outputs[name]
  const isDone = output !== undefined || index < job.stage || job.state === 'succeeded'
  const state = isDone ? paint('green', 'done') : index === job.stage ? paint(looks[job.state], job.state) : 'pending'
  const lines = output === undefined ? [] : JSON.stringify(output, null, 2).split('\n')
  const more = lines.length > mostLines ? [paint('dim', `… ${lines.length - mostLines} more lines; see --json`)] : []
  const fans = fanOuts.filter(({ stage }) => stage === index).flatMap(fanOutLines)
  return [
    `  ${name}${optional}: ${state}`,
    ...[...fans, ...lines.slice(0, mostLines), ...more].map((line) => `    ${line}`),
  ]
}

function timelineLines(job: Job, timeline: TimelineEvent[]): string[] {
  const [first] = timeline
  if (!first) return []
  const rows = timeline.map((event): Cell[] => {
    const { what, look, note } = formatEvent(event, job.stages)
    return [
      { text: `+${formatDuration(event.at.getTime() - first.at.getTime())}`, look: 'dim' },
      look ? { text: what, look } : { text: what },
      { text: formatStage(job.stages, event.stage) },
      { text: event.attempt === 0 ? '' : String(event.attempt) },
      { text: event.sessionId === null ? '' : String(event.sessionId) },
      { text: note },
    ]
  })
  const since = paint('dim', `since ${first.at.toISOString()}`)
  return [
    `${paint('bold', 'timeline')} ${since}`,
    ...table(['TIME', 'EVENT', 'STAGE', 'ATTEMPT', 'SESSION', 'NOTE'], rows),
  ]
}
