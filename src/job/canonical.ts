import { partsOf } from './exact-json.ts'

const chunkLength = 8_192

/** A text that is the same for equal values, regardless of the order of their keys. */
export function canonical(value: unknown): string {
  const known = partsOf(value)?.canonical
  if (known !== undefined) return known
  const steps = canonicalSteps(value)
  for (;;) {
    const { done, value: text } = steps.next()
    if (done) return text
  }
}

/** Makes the canonical text in small steps, and caches it for a value that came from outside. */
export function* canonicalSteps(value: unknown): Generator<undefined, string> {
  const writer: Writer = { chunks: [], chunk: '', count: 0 }
  if (isScalar(value)) return JSON.stringify(value)
  yield* write(writer, value as object)
  const text = writer.chunks.join('') + writer.chunk
  const parts = partsOf(value)
  if (parts) parts.canonical = text
  return text
}

interface Writer {
  chunks: string[]
  chunk: string
  count: number
}

const valuesPerStep = 256

function* write(writer: Writer, value: object): Generator<undefined, void> {
  const isList = Array.isArray(value)
  const fields = value as Record<string, unknown>
  const keys = isList ? null : Object.keys(fields).sort((a, b) => (a < b ? -1 : 1))
  const length = keys ? keys.length : (value as unknown[]).length
  add(writer, isList ? '[' : '{')
  for (let index = 0; index < length; index++) {
    if (index > 0) writer.chunk += ','
    const key = keys?.[index]
    if (key !== undefined) writer.chunk += `${JSON.stringify(key)}:`
    const inner = key === undefined ? (value as unknown[])[index] : fields[key]
    if (isScalar(inner)) add(writer, JSON.stringify(inner))
    else yield* write(writer, inner as object)
    if (++writer.count % valuesPerStep === 0) yield
  }
  add(writer, isList ? ']' : '}')
}

function add(writer: Writer, text: string): void {
  writer.chunk += text
  if (writer.chunk.length < chunkLength) return
  writer.chunks.push(writer.chunk)
  writer.chunk = ''
}

function isScalar(value: unknown): boolean {
  return typeof value !== 'object' || value === null
}
