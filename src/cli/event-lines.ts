import type { Holdfast } from '../engine/engine.ts'
import type { LogEvent } from '../events/event.ts'
import { formatEvent, formatStage, type StageNames } from './format-job.ts'
import { formatClock, formatDuration } from './format-time.ts'
import { shortId } from './pick-job.ts'
import { padded, paint } from './terminal.ts'

/** Looks up the stages of a kind for the jobs of a tenant. */
export type StagesOf = (kind: string, tenant: string) => Promise<StageNames | undefined>

const mostKinds = 10_000

/** Looks up stages, and caches them. Only unknown kinds are looked up again. */
export function knownStages(hf: Pick<Holdfast, 'kind'>): StagesOf {
  const known = new Map<string, StageNames>()
  return async (kind, tenant) => {
    const key = `${tenant} ${kind}`
    const stages = known.get(key) ?? (await hf.kind(kind, { tenant }))?.stages
    if (stages && known.size < mostKinds) known.set(key, stages)
    return stages
  }
}

/** Formats events as lines. */
export interface EventLines {
  of(event: LogEvent): Promise<string>
}

const mostRemembered = 10_000

/** Makes lines that align as far as possible, and that show the time since the previous event of the same job. */
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
    return last ? formatDuration(at.getTime() - last.getTime()) : ''
  }

  async function of(event: LogEvent): Promise<string> {
    const { kind, jobId, tenant, attempt } = event
    const stages = kind === null ? undefined : await stagesOf(kind, tenant)
    const { what, look, note } = formatEvent(event, stages)
    const stage = attempt === 0 ? '' : formatStage(stages, event.stage)
    widths.kind = Math.max(widths.kind, kind?.length ?? 0)
    widths.stage = Math.max(widths.stage, stage.length)
    const word = padded(what, 9)
    return [
      paint('dim', formatClock(event.at)),
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
