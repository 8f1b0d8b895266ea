import { partsOf } from './exact-json.ts'
import { type NotStorable, textProblem, unsafeKey, unsafeKeyProblem } from './refusal.ts'

/** The JSON of a value, or the first thing in it that Postgres can't store as JSON without loss. */
export function encodeStorable(value: unknown, name: string): { json: string } | NotStorable {
  const known = partsOf(value)
  if (known) return { json: known.json }
  const found = findProblem(value, [])
  if (found) return { path: name + found.path, problem: found.problem }
  // undefined is treated as in JSON: a field is omitted, an array element becomes null
  const json: string | undefined = JSON.stringify(value)
  return json === undefined ? { path: name, problem: 'is undefined; leave it out or use null' } : { json }
}

const deepest = 200

// Paths are built on the way back from a problem: building one for each of a million good values would cost more than the check.

function findProblem(value: unknown, above: object[]): NotStorable | undefined {
  switch (typeof value) {
    case 'string':
      return at('', textProblem(value))
    case 'number':
      return Number.isFinite(value) ? undefined : { path: '', problem: `is ${value}; use null or a string instead` }
    case 'boolean':
    case 'undefined':
      return undefined
    case 'object':
      return value === null ? undefined : objectProblem(value, above)
    default:
      return { path: '', problem: `is a ${typeof value}; only JSON values can be stored` }
  }
}

function at(path: string, problem: string | undefined): NotStorable | undefined {
  return problem === undefined ? undefined : { path, problem }
}

function objectProblem(value: object, above: object[]): NotStorable | undefined {
  if (above.includes(value))
    return { path: '', problem: 'refers back to an object that contains it; a cycle cannot be stored' }
  if (above.length >= deepest) return { path: '', problem: `is nested deeper than ${deepest} levels; flatten it` }
  above.push(value)
  const problem = problemWithin(value, above)
  above.pop()
  return problem
}

function problemWithin(value: object, above: object[]): NotStorable | undefined {
  if (Array.isArray(value)) return listProblem(value, above)
  if ('toJSON' in value && typeof value.toJSON === 'function') return jsonProblem(value as { toJSON(): unknown }, above)
  if (!isPlain(value))
    return {
      path: '',
      problem: `is a ${value.constructor?.name ?? 'special object'}; turn it into a plain object or an array`,
    }
  return fieldProblem(value as Record<string, unknown>, above)
}

function listProblem(list: unknown[], above: object[]): NotStorable | undefined {
  for (let index = 0; index < list.length; index++) {
    const found = findProblem(list[index], above)
    if (found) return { path: `[${index}]${found.path}`, problem: found.problem }
  }
  return undefined
}

function fieldProblem(fields: Record<string, unknown>, above: object[]): NotStorable | undefined {
  for (const key of Object.keys(fields)) {
    const badKey = key === unsafeKey ? unsafeKeyProblem : textProblem(key)
    if (badKey) return at(`, key ${JSON.stringify(key)}`, badKey)
    const found = findProblem(fields[key], above)
    if (found) return { path: `.${key}${found.path}`, problem: found.problem }
  }
  return undefined
}

function jsonProblem(value: { toJSON(): unknown }, above: object[]): NotStorable | undefined {
  const json = value.toJSON()
  // an invalid Date returns null, which would be stored as if it were intended
  if (json === null && value instanceof Date)
    return { path: '', problem: 'is an invalid Date; use null or a valid one' }
  return findProblem(json, above)
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}
