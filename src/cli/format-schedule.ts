import type { Schedule, ScheduleSummary, Slot } from '../schedule/schedule.ts'
import { formatDuration } from './format-time.ts'
import type { Cell } from './table.ts'
import { type Look, oneLine, paint } from './terminal.ts'

const looks: Record<Schedule['state'], Look> = { active: 'green', paused: 'yellow', failing: 'red', ended: 'dim' }
const slotLooks: Record<Slot['what'], Look> = {
  submitted: 'green',
  triggered: 'green',
  backfilled: 'green',
  buffered: 'cyan',
  skipped: 'yellow',
  failed: 'red',
}

/** When a schedule runs, in short. */
export function timingText({ cron, everyMs, tz }: Pick<Schedule, 'cron' | 'everyMs' | 'tz'>): string {
  return cron === null ? `every ${formatDuration(everyMs ?? 0)}` : `${cron} (${tz})`
}

/** The columns of a list of schedules. */
export const scheduleHeads = ['NAME', 'TENANT', 'KIND', 'RUNS', 'STATE', 'NEXT', 'LAST']

/** A schedule as a row of a table. */
export function scheduleCells(schedule: ScheduleSummary): Cell[] {
  return [
    { text: schedule.name },
    { text: schedule.tenant },
    { text: schedule.kind },
    { text: timingText(schedule) },
    { text: schedule.state, look: looks[schedule.state] },
    { text: schedule.nextAt?.toISOString() ?? '–' },
    { text: schedule.lastSlotAt?.toISOString() ?? '–', look: 'dim' },
  ]
}

/** A schedule, as lines. */
export function scheduleLines(schedule: Schedule): string[] {
  const { pausedAt, pausedBy, pauseReason, jitterMs, missedWindowMs } = schedule
  const all = schedule.missed === 'all' ? ` (window ${formatDuration(missedWindowMs)}, cap ${schedule.missedCap})` : ''
  const facts: [string, string | null | undefined | false][] = [
    ['schedule', schedule.name],
    ['tenant', schedule.tenant],
    ['kind', schedule.kind],
    ['input', oneLine(JSON.stringify(schedule.input))],
    ['runs', timingText(schedule)],
    ['state', paint(looks[schedule.state], schedule.state)],
    ['problem', schedule.problem && oneLine(schedule.problem)],
    [
      'paused',
      pausedAt &&
        oneLine([pausedAt.toISOString(), pausedBy && `by ${pausedBy}`, pauseReason].filter(Boolean).join(', ')),
    ],
    ['next', schedule.nextAt?.toISOString() ?? 'none left'],
    [
      'last',
      schedule.lastSlotAt &&
        `${schedule.lastSlotAt.toISOString()}${schedule.lastJob ? `, job ${schedule.lastJob}` : ''}`,
    ],
    ['waiting', schedule.bufferedAt && `slot ${schedule.bufferedAt.toISOString()}, until that job has ended`],
    ['from', schedule.startsAt?.toISOString()],
    ['until', schedule.endsAt?.toISOString()],
    ['jitter', jitterMs > 0 && formatDuration(jitterMs)],
    ['missed', `${schedule.missed}${all}`],
    ['overlap', schedule.overlap],
    ['declared', schedule.isDeclared && (schedule.isEdited ? 'in code, and changed at run time since' : 'in code')],
    [
      'set',
      oneLine(
        [schedule.updatedAt.toISOString(), schedule.updatedBy && `by ${schedule.updatedBy}`].filter(Boolean).join(', '),
      ),
    ],
  ]
  return facts.filter(([, value]) => value).map(([name, value]) => `${paint('bold', name.padEnd(9))} ${value}`)
}

/** The columns of a history. */
export const slotHeads = ['SLOT', 'WHAT', 'LATE', 'JOB', 'REASON']

/** A slot as a row of a table. */
export function slotCells({ slotAt, untilAt, what, slots, job, reason, decidedAt, by }: Slot): Cell[] {
  const most = slots >= 1_000 ? '1000 or more' : String(slots)
  const many = untilAt && slots > 1 ? `${most} slots, until ${untilAt.toISOString()}` : null
  const lateMs = decidedAt.getTime() - slotAt.getTime()
  return [
    { text: slotAt.toISOString() },
    { text: what, look: slotLooks[what] },
    { text: what === 'submitted' ? formatDuration(lateMs) : '' },
    { text: job ?? '–' },
    { text: [reason, many, by && `by ${by}`].filter(Boolean).join('; '), look: 'dim' },
  ]
}
