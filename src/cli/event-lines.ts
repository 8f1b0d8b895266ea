import type { Holdfast } from '../engine/engine.ts'
import type { LogEvent } from '../events/event.ts'
import { eventWords, type StageNames, stageWords } from './job-words.ts'
import { shortId } from './pick-job.ts'
import { padded, paint } from './terminal.ts'
import { clockWords, lengthWords } from './time-words.ts'

/** Asks for the stages of a kind, as the jobs of a tenant have them. */
export type StagesOf = (kind: string, tenant: string) => Promise<StageNames | undefined>

const mostKinds = 10_000

/** The stages of each kind; the database is asked again only for a kind that was not known before. */
export function knownStages(hf: Pick<Holdfast, 'kind'>): StagesOf {
  const known = new Map<string, StageNames>()
  return async (kind, tenant) => {
    const place = `${tenant} ${kind}`
    const stages = known.get(place) ?? (await hf.kind(kind, { tenant }))?.stages
    if (stages && known.size < mostKinds) known.set(place, stages)
    return stages
  }
}

/** Writes events as lines. */
export interface EventLines {
  of(event: LogEvent): Promise<string>
}

const mostRemembered = 10_000

/** Makes lines that align as far as can be known, and that tell how long it was since the last event of the same job. */
export function makeLines(stagesOf: StagesOf): EventLines {
  const lastAt = new Map<string, Date>()
  const widths = { kind: 7, stage: 9 }

  function sinceLast({ jobId, at, type }: LogEvent): string {
    if (type === 'job.log' || jobId === null) return ''
    const last = lastAt.get(jobId)
    lastAt.delete(jobId)
    lastAt.set(jobId, at)
    const [oldest] = lastAt.keys()
    if (lastAt.size > mostRemembered && oldest) lastAt.delete(oldest)
    return last ? lengthWords(at.getTime() - last.getTime()) : ''
  }

  async function of(event: LogEvent): Promise<string> {
    const { kind, jobId, tenant, attempt } = event
    const stages = kind === null ? undefined : await stagesOf(kind, tenant)
    const { what, look, note } = eventWords(event, stages)
    const stage = attempt === 0 ? '' : stageWords(stages, event.stage)
    widths.kind = Math.max(widths.kind, kind?.length ?? 0)
    widths.stage = Math.max(widths.stage, stage.length)
    const word = padded(what, 9)
    return [
      paint('dim', clockWords(event.at)),
      padded(kind ?? '', widths.kind),
      padded(jobId === null ? '' : shortId(jobId), 8),
      look ? paint(look, word) : word,
      padded(stage, widths.stage),
      padded(attempt === 0 ? '' : `attempt ${attempt}`, 10),
      padded(sinceLast(event), 7),
      note,
    ]
      .join('  ')
      .trimEnd()
  }

  return { of }
}
