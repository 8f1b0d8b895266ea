/** What a method and a path lead to. */
export interface Route<T> {
  method: string
  /** With parameters in braces, as in `/v1/jobs/{id}`. */
  path: string
  target: T
}

/** What was found at a path: the target with its parameters, or the methods that are allowed instead; null if there is nothing. */
export type Found<T> = { target: T; params: Record<string, string> } | { allowed: string[] } | null

/** Makes a router. Paths without parameters take precedence, and HEAD finds what GET finds. */
export function makeRouter<T>(routes: readonly Route<T>[]): (method: string, path: string) => Found<T> {
  const whole = new Map<string, Map<string, T>>()
  const patterns: { shape: RegExp; methods: Map<string, T> }[] = []
  for (const { method, path, target } of routes) methodsAt(path).set(method, target)

  function methodsAt(path: string): Map<string, T> {
    if (!path.includes('{')) {
      const methods = whole.get(path) ?? new Map<string, T>()
      whole.set(path, methods)
      return methods
    }
    const shape = new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`)
    const known = patterns.find((one) => one.shape.source === shape.source)
    const added = known ?? { shape, methods: new Map<string, T>() }
    if (!known) patterns.push(added)
    return added.methods
  }

  return (method, requested) => {
    const path = requested.length > 1 && requested.endsWith('/') ? requested.slice(0, -1) : requested
    const wanted = method === 'HEAD' ? 'GET' : method
    const allowed: string[] = []
    const exact = whole.get(path)
    const target = exact?.get(wanted)
    if (target !== undefined) return { target, params: {} }
    allowed.push(...(exact?.keys() ?? []))
    for (const { shape, methods } of patterns) {
      const match = shape.exec(path)
      if (!match) continue
      const matched = methods.get(wanted)
      if (matched !== undefined) return { target: matched, params: decoded(match.groups ?? {}) }
      allowed.push(...methods.keys())
    }
    return allowed.length > 0 ? { allowed: [...new Set(allowed)] } : null
  }
}

function decoded(groups: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(groups).map(([name, value]) => [name, decode(value)]))
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // no schema accepts it in this form
  }
}
