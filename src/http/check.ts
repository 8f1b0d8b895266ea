import { HoldfastError } from '../errors/errors.ts'
import type { z } from './zod.ts'

const nothing: Record<string, unknown> = {}

/** Parses a part of a request with its schema. Throws request_invalid. Without a schema, no field is allowed. */
export function check(where: string, schema: z.ZodType | undefined, part: unknown): unknown {
  if (!schema) {
    const [odd] = Object.keys(part ?? nothing)
    if (odd === undefined) return part
    throw refused([{ path: `${where}.${odd.slice(0, 100)}`, message: 'is not a known field' }])
  }
  const checked = schema.safeParse(part)
  if (checked.success) return checked.data
  throw refused(
    checked.error.issues
      .slice(0, 20)
      .map(({ path, message }) => ({ path: [where, ...path].join('.').slice(0, 300), message: message.slice(0, 300) })),
  )
}

function refused(issues: { path: string; message: string }[]): HoldfastError {
  const told = issues.slice(0, 5).map(({ path, message }) => `${path}: ${message}`)
  return new HoldfastError('request_invalid', `The request is invalid: ${told.join('; ')}.`, { details: { issues } })
}
