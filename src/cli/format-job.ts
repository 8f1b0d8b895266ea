import { isFinal, type State } from '../job/machine.ts'
import type { JobSummary } from '../reads/job.ts'
import { formatDuration } from './format-time.ts'
import { type Look, oneLine } from './terminal.ts'

/** The stages of a kind. */
export type StageNames = readonly { name: string; optional: boolean }[]

/** The color of each state. */
export const looks: Record<State, Look> = {
  queued: 'cyan',
  running: 'blue',
  waiting: 'magenta',
  succeeded: 'green',
  partial: 'yellow',
  failed: 'red',
  cancelled: 'dim',
}

/** A stage by its number, as in `fields 1/2`; only the number if the kind is not registered. */
export function formatStage(stages: StageNames | undefined, stage: number): string {
  const found = stages?.[stage]
  return found ? `${found.name} ${stage + 1}/${stages.length}` : String(stage + 1)
}

/** The state of a job; if it is queued for later, also when it is due. */
export function formatState({ state, runAt, failures }: JobSummary, nowMs = Date.now()): string {
  const inMs = runAt ? runAt.getTime() - nowMs : 0
  if (state !== 'queued' || inMs < 1_000) return state
  return `${state} (${failures > 0 ? 'again ' : ''}in ${formatDuration(inMs)})`
}

/** How long a job took, or has taken so far. */
export function formatSpan(job: JobSummary, nowMs = Date.now()): string {
  const endMs = job.finishedAt?.getTime() ?? nowMs
  const words = formatDuration(endMs - job.submittedAt.getTime())
  return isFinal(job.state) ? `ended after ${words}` : `submitted ${words} ago`
}

/** An event, as the live view and a timeline show it. */
export interface EventWords {
  what: string
  look: Look | undefined
  note: string
}

interface Told {
  type: string
  stage: number
  data: unknown
  at: Date
}

const eventLooks: Record<string, Look> = {
  submitted: 'cyan',
  fanned_out: 'magenta',
  joined: 'magenta',
  finished: 'green',
  failed: 'red',
  quarantined: 'red',
  partial: 'yellow',
  retried: 'yellow',
  released: 'yellow',
  revived: 'yellow',
  cancelled: 'dim',
  log: 'dim',
  'webhook.disabled': 'red',
  'key.revoked': 'yellow',
}

/** What happened, as a word and a note. */
export function formatEvent(event: Told, stages: StageNames | undefined): EventWords {
  const word = event.type.replace(/^job\./, '')
  const isPartial = word === 'failed' && stages?.[event.stage]?.optional === true
  const what = isPartial ? 'partial' : word
  return { what, look: eventLooks[what], note: oneLine(noteOf(event)) }
}

/** Why an event happened, as far as it says: an error, a reason, a rung of the recovery ladder, and who did it. */
export function noteOf({ data, at }: Pick<Told, 'data' | 'at'>): string {
  if (typeof data !== 'object' || data === null) return ''
  const {
    message,
    reason,
    error,
    why,
    rung,
    exit,
    by,
    runAt,
    items,
    name,
    scopes,
    origin,
    group,
    queue,
    repair,
    data: more,
  } = data as Record<string, unknown>
  const lost = rung === undefined || exit === undefined ? rung : `${rung}, ${exit}`
  const told = message ?? reason ?? (error as { message?: unknown } | undefined)?.message ?? why ?? lost
  const about = told ?? origin ?? group ?? queue ?? repair
  const words = about === undefined ? [] : [String(about)]
  if (typeof name === 'string' && Array.isArray(scopes)) words.push(`${name}: ${scopes.join(', ')}`)
  if (typeof by === 'string') words.push(`(by ${by})`)
  if (typeof items === 'number') words.push(`${items} items`)
  if (more !== undefined) words.push(JSON.stringify(more))
  if (typeof runAt === 'string') words.push(`(retry in ${formatDuration(new Date(runAt).getTime() - at.getTime())})`)
  return words.join(' ')
}
