/**
 * A database URL that is safe to show. A malformed URL must not reveal its password either, so everything that could be the password is
 * hidden: all between the first colon and the last @, no matter how a parser reads an unencoded @, / or ?, and the value of every parameter
 * whose name ends in `password`.
 */
export function withoutPassword(url: string): string {
  let shown = ''
  let from = 0
  for (const [start, end] of secretSpans(url)) {
    // a span inside the previous one is already hidden
    if (start >= from) shown += `${url.slice(from, start)}***`
    from = Math.max(from, end)
  }
  return shown + url.slice(from)
}

/** Text that repeats user input, safe to show: each of its words might be a database URL. */
export function withoutPasswords(text: string): string {
  return text.replace(/\S+/g, withoutPassword)
}

function secretSpans(url: string): [number, number][] {
  const spans: [number, number][] = []
  const colon = url.indexOf(':', /^[a-z][a-z0-9+.-]*:\/\//i.exec(url)?.[0].length ?? 0)
  const at = url.lastIndexOf('@')
  if (colon >= 0 && colon < at) spans.push([colon + 1, at])
  for (const { 0: head, 1: name, index } of url.matchAll(/([^?&=\s]+)\s*=/g)) {
    if (!/password$/i.test(decoded(name as string))) continue
    const from = index + head.length
    const end = url.indexOf('&', from)
    spans.push([from, end < 0 ? url.length : end])
  }
  return spans.sort(([a], [b]) => a - b)
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
