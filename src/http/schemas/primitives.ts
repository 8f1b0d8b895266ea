import { allStates, type FinalState, finalStates, type State } from '../../job/machine.ts'
import { nameShape } from '../../job/names.ts'
import { z } from '../zod.ts'

/** The name of a kind, a queue, a stage or a tenant. */
export const name = z
  .string()
  .regex(nameShape, 'must be up to 100 letters, digits or any of _ . : -, and start with a letter or digit')

/** The id of a job, an endpoint, a delivery or a key. */
export const id = z
  .string()
  .regex(/^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/, 'must be a UUID')
  .openapi({ format: 'uuid', example: '01890a5d-ac96-774b-bcce-b302099a8057' })

/** Path parameters of anything that is found by its id. */
export const byId = z.strictObject({ id })

/** The state of a job. */
export const state = z.enum(allStates as [State, ...State[]]).openapi('State')

const duration = z.union([
  z.number().int().min(0).max(315_360_000_000),
  z.string().max(20).openapi({ description: 'With a unit: ms, s, m, h, d or w.', example: '30d' }),
])
const byEnd = <T extends z.ZodType>(schema: T) =>
  Object.fromEntries(finalStates.map((end) => [end, schema.optional()])) as Record<FinalState, z.ZodOptional<T>>

/** How long to keep jobs after they end, in a request. */
export const keep = z.union([duration, z.strictObject(byEnd(duration))]).openapi({
  description:
    'How long to keep jobs after they end, for all states or by state. Milliseconds, or a duration such as `30d`.',
})
/** The same in milliseconds, by state. */
export const keptMs = z.object(byEnd(z.number().int())).openapi({
  description: 'How long jobs are kept after they end, in milliseconds, by state. Null if the settings apply.',
})

/** A time, as text. */
export const time = z.iso
  .datetime({ offset: true })
  .openapi({ format: 'date-time', example: '2026-01-31T12:00:00.000Z' })
/** A time in a request. With its offset, the last day of a year may fall into the next. */
export const inputTime = time
  .refine((text) => isWithinYears(new Date(text)), 'must be a time in the years 0 to 9999')
  .transform((text) => new Date(text))

function isWithinYears(date: Date): boolean {
  const year = date.getUTCFullYear()
  return year >= 0 && year <= 9999
}

/** Text that Postgres can store. */
export const text = (most: number) =>
  z
    .string()
    .max(most)
    .refine((given) => !given.includes('\0') && given.isWellFormed(), 'must not contain NUL or unpaired surrogates')

/** A whole number in a query. */
export const whole = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().int().min(least).max(most))
    .openapi({ type: 'integer', minimum: least, maximum: most })

/** A boolean in a query. */
export const flag = z
  .enum(['true', 'false'])
  .transform((word) => word === 'true')
  .openapi({ type: 'boolean' })

/** A comma-separated list in a query. */
export const list = (about: string) =>
  z
    .string()
    .max(2_000)
    .transform((words) => words.split(',').map((word) => word.trim()))
    .openapi({ type: 'string', description: about })

/** Where a page begins: the `next` value of the previous page. */
export const cursor = z.string().max(1_000).openapi({ description: 'The `next` value of the previous page.' })

/** Where the next page begins; null at the end. */
export const next = z
  .string()
  .nullable()
  .openapi({ description: 'The `cursor` of the next page; null on the last page.' })

/** The size of a page. */
export const limit = whole(1, 1_000)

/** The tenant that a request is about. */
export const tenant = name.openapi({
  description: 'Only for keys for all tenants. A tenant key always uses its own tenant.',
})

/** Any JSON. */
export const anything = z.unknown().openapi({ description: 'Any JSON value.' })

/** An object with any fields, used as it is: copying a large one field by field would delay other requests. */
export const fields = z
  .custom<Record<string, unknown>>((given) => typeof given === 'object' && given !== null && !Array.isArray(given), {
    error: 'must be an object',
  })
  .openapi({ type: 'object', additionalProperties: {} })

/** The error of a job. */
export const jobError = z.object({ code: z.string(), message: z.string() }).openapi('JobError')
