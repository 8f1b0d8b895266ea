/** What can't be stored, where it stands, and what to do about it. */
export interface NotStorable {
  path: string
  problem: string
}

/** The JSON text of a value, or the first thing in it that JSON in Postgres can't hold without loss. */
export function encodeStorable(value: unknown, name: string): { json: string } | NotStorable {
  const problem = findProblem(value, name, [])
  if (problem) return problem
  // undefined inside goes as it does in JSON: a field is left out, an element of a list is null
  const json: string | undefined = JSON.stringify(value)
  return json === undefined ? { path: name, problem: 'is undefined; leave it out or use null' } : { json }
}

const deepest = 200

function findProblem(value: unknown, path: string, above: object[]): NotStorable | undefined {
  switch (typeof value) {
    case 'string':
      return textProblem(value, path)
    case 'number':
      return Number.isFinite(value) ? undefined : { path, problem: `is ${value}; use null or a string instead` }
    case 'boolean':
    case 'undefined':
      return undefined
    case 'object':
      return value === null ? undefined : objectProblem(value, path, above)
    default:
      return { path, problem: `is a ${typeof value}; only JSON values can be stored` }
  }
}

function textProblem(text: string, path: string): NotStorable | undefined {
  if (text.includes('\0'))
    return { path, problem: 'holds a NUL character (\\u0000), which Postgres refuses; remove it' }
  if (!text.isWellFormed())
    return {
      path,
      problem: 'holds a lone surrogate, which is no valid text; repair it (String.prototype.toWellFormed)',
    }
  return undefined
}

function objectProblem(value: object, path: string, above: object[]): NotStorable | undefined {
  if (above.includes(value))
    return { path, problem: 'refers back to an object that contains it; a cycle cannot be stored' }
  if (above.length >= deepest) return { path, problem: `is nested deeper than ${deepest} levels; flatten it` }
  const within = [...above, value]
  if (Array.isArray(value)) return firstProblem(value.length, (i) => findProblem(value[i], `${path}[${i}]`, within))
  if ('toJSON' in value && typeof value.toJSON === 'function')
    return jsonProblem(value as { toJSON(): unknown }, path, within)
  if (!isPlain(value))
    return {
      path,
      problem: `is a ${value.constructor?.name ?? 'special object'}; turn it into a plain object or an array`,
    }
  const entries = Object.entries(value)
  return firstProblem(entries.length, (i) => {
    const [key, inner] = entries[i] as [string, unknown]
    return textProblem(key, `${path}, key ${JSON.stringify(key)}`) ?? findProblem(inner, `${path}.${key}`, within)
  })
}

function jsonProblem(value: { toJSON(): unknown }, path: string, within: object[]): NotStorable | undefined {
  const json = value.toJSON()
  // an invalid Date answers null, and would be stored as if somebody had meant it
  if (json === null && value instanceof Date) return { path, problem: 'is an invalid Date; use null or a valid one' }
  return findProblem(json, path, within)
}

function firstProblem(count: number, problemAt: (index: number) => NotStorable | undefined): NotStorable | undefined {
  for (let i = 0; i < count; i++) {
    const problem = problemAt(i)
    if (problem) return problem
  }
  return undefined
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}
