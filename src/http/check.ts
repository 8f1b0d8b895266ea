import { HoldfastError } from '../errors/errors.ts'
import type { z } from './zod.ts'

const nobody: Record<string, unknown> = {}

/** What was given, as its schema makes it; throws what does not fit. Without a schema, anything is too much. */
export function check(where: string, schema: z.ZodType | undefined, given: unknown): unknown {
  if (!schema) {
    const [odd] = Object.keys(given ?? nobody)
    if (odd === undefined) return given
    throw refused([{ path: `${where}.${odd.slice(0, 100)}`, message: 'is not known here' }])
  }
  const checked = schema.safeParse(given)
  if (checked.success) return checked.data
  throw refused(
    checked.error.issues
      .slice(0, 20)
      .map(({ path, message }) => ({ path: [where, ...path].join('.').slice(0, 300), message: message.slice(0, 300) })),
  )
}

function refused(issues: { path: string; message: string }[]): HoldfastError {
  const told = issues.slice(0, 5).map(({ path, message }) => `${path}: ${message}`)
  return new HoldfastError('request_invalid', `The request does not fit: ${told.join('; ')}.`, { details: { issues } })
}
