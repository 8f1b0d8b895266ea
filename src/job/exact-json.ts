import { RawJson, scanSteps } from './raw-json.ts'
import { type NotStorable, textProblem, unsafeKey, unsafeKeyProblem } from './refusal.ts'

/**
 * JSON from outside contains something that cannot be read without loss. JSON.parse silently rounds integers beyond 2^53, and keeps a
 * `__proto__` that later copies drop; both are refused here, with their path. Malformed text is a SyntaxError, as usual.
 */
export class InexactJson extends Error {
  readonly found: NotStorable

  constructor(found: NotStorable) {
    super(`${found.path} ${found.problem}.`)
    this.found = found
  }
}

/** The texts of a value that came from outside, so that they need not be made again. */
export interface Parts {
  /** Its original JSON. All of it can be stored. */
  json: string
  canonical?: string
}

const parts = new WeakMap<object, Parts>()

/** The texts of a value that was read in steps from a stored field; undefined for any other value. */
export function partsOf(value: unknown): Parts | undefined {
  if (value instanceof RawJson) return value
  return typeof value === 'object' && value !== null ? parts.get(value) : undefined
}

/** Fields whose values are stored unchanged, near the top of a body. */
const storedFields = new Set(['input', 'output', 'meta'])
const deepestStored = 3

/** The maximum depth of what can be stored, plus the levels around it. */
const deepest = 200 + deepestStored
const valuesPerStep = 256
const bytesPerStep = 16_384

/** Text without any of this is parsed by JSON.parse, which is several times faster. The escapes are those of the letters in `__proto__`. */
const suspicious = /\d{16}|__proto__|\\u00(?:5f|70|72|6f|74)/i

/** Parses JSON. `name` is the start of the path in a refusal. */
export function parseExact(text: string, name: string): unknown {
  if (!suspicious.test(text)) return JSON.parse(text)
  const steps = parseSteps(Buffer.from(text), name)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/**
 * The same in small steps, for text so long that other work must get its turn in between. The text is UTF-8 bytes. With `leavesInputs`, inputs
 * that are arrays or objects are checked and stay bytes, if possible.
 */
export function* parseSteps(bytes: Buffer, name: string, { leavesInputs = false } = {}): Generator<undefined, unknown> {
  const reader = new Reader(bytes, name)
  let restedAt = 0
  for (let count = 1; ; count++) {
    const rawEnd = leavesInputs && reader.isAtInput() ? yield* scanSteps(reader.text, reader.at) : -1
    const whole = rawEnd < 0 ? reader.readValue() : reader.takeRaw(rawEnd)
    if (whole) return whole.value
    // a value that stays raw may be long
    if (count % valuesPerStep > 0 && reader.at - restedAt < bytesPerStep) continue
    restedAt = reader.at
    yield
  }
}

/** Parses an input that was left raw, in small steps. */
export function* valueSteps(raw: RawJson): Generator<undefined, unknown> {
  const value = yield* parseSteps(raw.bytes, 'input')
  parts.set(value as object, { json: raw.json })
  return value
}

interface Frame {
  holder: unknown[] | Record<string, unknown>
  /** The field that is being read; null in an array. */
  key: string | null
  /** Where its text begins, if its text is kept; otherwise -1. */
  from: number
}

class Reader {
  /** One character for each byte, so that positions are the same in both. */
  readonly text: string
  readonly #bytes: Buffer
  readonly #name: string
  readonly #open: Frame[] = []
  #at = 0

  constructor(bytes: Buffer, name: string) {
    this.text = bytes.toString('latin1')
    this.#bytes = bytes
    this.#name = name
  }

  get at(): number {
    return this.#at
  }

  /** Whether the next value is an input that is an array or an object. */
  isAtInput(): boolean {
    const next = this.#peek()
    if ((next !== '[' && next !== '{') || this.#storedField() !== 'input') return false
    // a field of the same name inside a stored value is kept as part of that value
    return this.#open.every(({ from }) => from < 0)
  }

  /** Takes the text up to `end` as the next value. */
  takeRaw(end: number): { value: unknown } | undefined {
    const raw = new RawJson(this.#bytes.subarray(this.#at, end))
    this.#at = end
    return this.#place(raw)
  }

  /** Reads to the end of the next value, or into the next array or object. Returns the whole value once it is read. */
  readValue(): { value: unknown } | undefined {
    const next = this.#peek()
    if (next !== '[' && next !== '{') return this.#place(this.#readScalar(next))
    const from = this.#storedField() === undefined ? -1 : this.#at
    const frame: Frame = next === '[' ? { holder: [], key: null, from } : { holder: {}, key: '', from }
    this.#at += 1
    if (this.#peek() === endOf(frame)) {
      this.#at += 1
      return this.#place(frame.holder)
    }
    if (this.#open.length >= deepest) throw this.#refusal(`is nested deeper than ${deepest} levels; flatten it`)
    this.#open.push(frame)
    if (frame.key !== null) this.#readKey(frame)
    return undefined
  }

  /** Adds a value to its array or object, and closes those that end with it. */
  #place(given: unknown): { value: unknown } | undefined {
    let value = given
    for (;;) {
      const frame = this.#open.at(-1)
      if (!frame) return this.#finish(value)
      if (frame.key === null) (frame.holder as unknown[]).push(value)
      else (frame.holder as Record<string, unknown>)[frame.key] = value
      const next = this.#peek()
      this.#at += 1
      if (next === ',') {
        if (frame.key !== null) this.#readKey(frame)
        return undefined
      }
      if (next !== endOf(frame)) throw new SyntaxError('A comma or a closing bracket is missing.')
      this.#open.pop()
      value = frame.holder
      if (frame.from >= 0) this.#keep(frame)
    }
  }

  #keep({ holder, from }: Frame): void {
    const text = this.#textOf(from, this.#at)
    // without its line breaks: text with control characters costs far more to pass to Postgres
    parts.set(holder, { json: /[\t\r\n]/.test(text) ? JSON.stringify(holder) : text })
  }

  /** The name of the field that is being read, if it is a stored one. */
  #storedField(): string | undefined {
    const above = this.#open.length <= deepestStored ? this.#open.at(-1)?.key : undefined
    return typeof above === 'string' && storedFields.has(above) ? above : undefined
  }

  #finish(value: unknown): { value: unknown } {
    this.#peek()
    if (this.#at < this.text.length) throw new SyntaxError('Unexpected text after the value.')
    return { value }
  }

  #readKey(frame: Frame): void {
    if (this.#peek() !== '"') throw new SyntaxError('A field name is missing.')
    const key = this.#readText()
    if (this.#peek() !== ':') throw new SyntaxError('A colon is missing.')
    this.#at += 1
    frame.key = key
    if (key === unsafeKey) throw this.#refusal(unsafeKeyProblem)
  }

  #readScalar(next: string): unknown {
    if (next === '"') return this.#readText()
    scalar.lastIndex = this.#at
    const found = scalar.exec(this.text)?.[0]
    if (found === undefined) throw new SyntaxError('A value is missing.')
    if (isInexact(found))
      throw this.#refusal('is an integer that a JavaScript number cannot hold exactly; send it as a string')
    this.#at += found.length
    return found.length < 16 ? scalarOf(found) : JSON.parse(found)
  }

  #readText(): string {
    const from = this.#at
    let end = this.text.indexOf('"', from + 1)
    while (end >= 0 && this.#isEscaped(end)) end = this.text.indexOf('"', end + 1)
    if (end < 0) throw new SyntaxError('A string is not terminated.')
    this.#at = end + 1
    const inner = this.#textOf(from + 1, end)
    if (!needsParsing.test(inner)) return inner
    const text: string = JSON.parse(`"${inner}"`)
    const problem = textProblem(text)
    if (problem) throw this.#refusal(problem)
    return text
  }

  #textOf(from: number, end: number): string {
    const text = this.text.slice(from, end)
    return beyondAscii.test(text) ? this.#bytes.toString('utf8', from, end) : text
  }

  #isEscaped(quote: number): boolean {
    let from = quote
    while (this.text[from - 1] === '\\') from -= 1
    return (quote - from) % 2 === 1
  }

  /** The next character that is not white space; empty at the end. */
  #peek(): string {
    // most JSON has no white space at all
    if (this.text.charCodeAt(this.#at) > 32) return this.text[this.#at] as string
    blank.lastIndex = this.#at
    if (blank.test(this.text)) this.#at = blank.lastIndex
    return this.text[this.#at] ?? ''
  }

  #refusal(problem: string): InexactJson {
    const path = this.#open.map(({ holder, key }) => (key === null ? `[${(holder as unknown[]).length}]` : `.${key}`))
    return new InexactJson({ path: `${this.#name}${path.join('')}`, problem })
  }
}

const beyondAscii = /[\u0080-\u00ff]/
const blank = /[ \t\r\n]+/y
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON allows none of them inside a string
const needsParsing = /[\\\u0000-\u001f]/

/** Faster than a call of JSON.parse. */
function scalarOf(text: string): unknown {
  if (text === 'true') return true
  if (text === 'false') return false
  return text === 'null' ? null : Number(text)
}

function endOf({ key }: Frame): string {
  return key === null ? ']' : '}'
}

/** Whether a number is an integer that a JavaScript number can't represent exactly. */
function isInexact(number: string): boolean {
  if (number.length < 16 || !/^-?\d+$/.test(number)) return false
  // the largest number has 309 digits
  return number.length > 310 || !Number.isFinite(Number(number)) || BigInt(Number(number)) !== BigInt(number)
}
