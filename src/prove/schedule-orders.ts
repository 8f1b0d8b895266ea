import type { Holdfast } from '../engine/engine.ts'
import type { AnyJob } from '../job/define.ts'
import type { ScheduleOrder } from './orders.ts'

const hourMs = 3_600_000
const everyMs = 1_000

/** Carries out an order about a schedule. Each can be carried out twice. */
export async function carryOutOnSchedule(hf: Holdfast, order: ScheduleOrder, job: AnyJob): Promise<string[]> {
  const { name, act } = order
  switch (act) {
    case 'set':
      await set(hf, order, job)
      return []
    case 'read':
      await hf.schedules.list()
      await hf.schedules.list({ tenant: 'default' })
      await hf.schedules.history(name)
      await hf.schedules.preview(name)
      return []
    case 'backfill':
      await hf.schedules.backfill(name, {
        from: new Date(Date.now() - hourMs),
        to: new Date(Date.now() - hourMs + 3 * everyMs),
      })
      return []
    case 'trigger':
      return [(await hf.schedules.trigger(name)).job]
    case 'remove':
      // gone: an earlier try whose response was lost has removed it
      await hf.schedules.remove(name).catch((error) => {
        if (error?.code !== 'schedule_not_found') throw error
      })
      return []
    default:
      await hf.schedules[act](name)
      return []
  }
}

/** With so many slots, one per second; otherwise hourly, so that nothing is due by itself. */
async function set(hf: Holdfast, { name, overlap, slots }: ScheduleOrder, job: AnyJob): Promise<void> {
  const now = Math.floor(Date.now() / everyMs) * everyMs
  const timing = slots ? { every: everyMs, endsAt: new Date(now + slots * everyMs) } : { every: hourMs }
  await hf.schedules.set(name, { kind: job, input: {}, ...timing, ...(overlap && { overlap }) })
}
