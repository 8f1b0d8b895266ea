import { missedModes, overlapModes } from '../../job/schedule.ts'
import { z } from '../zod.ts'
import { anything, id, inputTime, name, tenant, time } from './primitives.ts'

/** A schedule as it is listed. */
export const scheduleSummary = z
  .object({
    name: z.string(),
    tenant: z.string(),
    kind: z.string(),
    priority: z.number().int().nullable(),
    cron: z.string().nullable(),
    everyMs: z.number().int().nullable(),
    tz: z.string(),
    jitterMs: z.number().int(),
    startsAt: time.nullable(),
    endsAt: time.nullable(),
    missed: z.enum(missedModes),
    missedWindowMs: z.number().int(),
    missedCap: z.number().int(),
    overlap: z.enum(overlapModes),
    state: z.enum(['active', 'paused', 'failing', 'ended']),
    nextAt: time.nullable().openapi({ description: 'The next slot; null if there is none left.' }),
    bufferedAt: time.nullable().openapi({ description: 'A slot that waits for the job of an earlier one to end.' }),
    lastSlotAt: time.nullable(),
    lastJob: id.nullable(),
    pausedAt: time.nullable(),
    pausedBy: z.string().nullable(),
    pauseReason: z.string().nullable(),
    isDeclared: z.boolean().openapi({ description: 'Whether a kind declares it in code.' }),
    isEdited: z.boolean().openapi({ description: 'Whether it was changed at run time since it was declared.' }),
    problem: z.string().nullable().openapi({ description: 'Why its slot could not be decided; it is tried again.' }),
    createdAt: time,
    updatedAt: time,
    updatedBy: z.string().nullable(),
  })
  .openapi('ScheduleSummary')

/** A schedule with the input of its jobs. */
export const schedule = scheduleSummary.extend({ input: anything }).openapi('Schedule')

/** What became of a slot. */
export const slot = z
  .object({
    slotAt: time,
    what: z.enum(['submitted', 'skipped', 'buffered', 'failed', 'triggered', 'backfilled']),
    reason: z.string().nullable(),
    job: id.nullable(),
    untilAt: time.nullable().openapi({ description: 'The last of several slots that were skipped together.' }),
    slots: z.number().int().openapi({ description: 'How many slots it stands for; 1,000 means at least that many.' }),
    decidedAt: time,
    by: z.string().nullable(),
  })
  .openapi('Slot')

const duration = z.union([
  z.number().int().min(0).max(316_224_000_000),
  z.string().max(20).openapi({ description: 'With a unit: ms, s, m, h, d or w.', example: '10m' }),
])

/** A schedule to set. */
export const newSchedule = z.strictObject({
  name,
  kind: name,
  input: anything.optional(),
  tenant: tenant.optional(),
  priority: z.number().int().min(1).max(4).optional(),
  cron: z.string().max(200).optional().openapi({
    description: 'A pattern of five fields, or six with seconds first, or a name such as `@daily`.',
    example: '0 3 * * *',
  }),
  every: duration.optional(),
  tz: z.string().max(100).optional().openapi({ example: 'Europe/Berlin' }),
  jitter: duration.optional(),
  startsAt: inputTime.optional(),
  endsAt: inputTime.optional(),
  missed: z.enum(missedModes).optional(),
  missedWindow: duration.optional(),
  missedCap: z.number().int().min(1).max(1_000).optional(),
  overlap: z.enum(overlapModes).optional(),
})
