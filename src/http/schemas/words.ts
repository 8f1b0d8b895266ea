import { allStates, type State } from '../../job/machine.ts'
import { z } from '../zod.ts'

const nameShape = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$/

/** The name of a kind, a queue, a stage or a tenant. */
export const name = z
  .string()
  .regex(nameShape, 'must be up to 100 letters, digits and any of _ . : -, beginning with a letter or digit')

/** The id of a job, an endpoint, a delivery or a key. */
export const id = z
  .string()
  .regex(/^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/, 'must be a UUID')
  .openapi({ format: 'uuid', example: '01890a5d-ac96-774b-bcce-b302099a8057' })

/** The path of anything that is found by its id. */
export const byId = z.strictObject({ id })

/** The state of a job. */
export const state = z.enum(allStates as [State, ...State[]]).openapi('State')

/** A time, as text. */
export const time = z.iso
  .datetime({ offset: true })
  .openapi({ format: 'date-time', example: '2026-01-31T12:00:00.000Z' })
/** A time that somebody gives; with its offset, the last day of a year may be one of the next. */
export const givenTime = time
  .refine((text) => isWithinYears(new Date(text)), 'must be a time of the years 0 to 9999')
  .transform((text) => new Date(text))

function isWithinYears(given: Date): boolean {
  const year = given.getUTCFullYear()
  return year >= 0 && year <= 9999
}

/** A text for people that Postgres can hold. */
export const text = (most: number) =>
  z
    .string()
    .max(most)
    .refine((given) => !given.includes('\0') && given.isWellFormed(), 'must not hold NUL or half a character')

/** A whole number in a query. */
export const whole = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().int().min(least).max(most))
    .openapi({ type: 'integer', minimum: least, maximum: most })

/** Yes or no in a query. */
export const flag = z
  .enum(['true', 'false'])
  .transform((word) => word === 'true')
  .openapi({ type: 'boolean' })

/** Several words in a query, with commas between. */
export const list = (about: string) =>
  z
    .string()
    .max(2_000)
    .transform((words) => words.split(',').map((word) => word.trim()))
    .openapi({ type: 'string', description: about })

/** Where a page begins: what `next` of the page before said. */
export const cursor = z.string().max(1_000).openapi({ description: 'What `next` of the page before said.' })

/** What `next` says: where the next page begins, or null at the end. */
export const next = z
  .string()
  .nullable()
  .openapi({ description: 'The `cursor` of the next page; null if this was the last.' })

/** The size of a page. */
export const limit = whole(1, 1_000)

/** The tenant that is meant. */
export const tenant = name.openapi({ description: 'Only with a key for all tenants; a key of a tenant means its own.' })

/** Any JSON. */
export const anything = z.unknown().openapi({ description: 'Any JSON.' })

/** An object with any fields, taken as it is: to copy a large one field by field would hold up all others. */
export const fields = z
  .custom<Record<string, unknown>>((given) => typeof given === 'object' && given !== null && !Array.isArray(given), {
    error: 'must be an object',
  })
  .openapi({ type: 'object', additionalProperties: {} })

/** What went wrong with a job. */
export const jobError = z.object({ code: z.string(), message: z.string() }).openapi('JobError')
