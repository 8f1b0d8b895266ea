import { type NotStorable, textProblem, unsafeKey, unsafeKeyProblem } from './refusal.ts'

/**
 * JSON from outside, read without loss. JSON.parse rounds integers beyond 2^53 without a word, and keeps a `__proto__` that later copies drop: both are refused
 * here, with the place where they stand. Malformed text is a SyntaxError, as ever.
 */
export class InexactJson extends Error {
  readonly found: NotStorable

  constructor(found: NotStorable) {
    super(`${found.path} ${found.problem}.`)
    this.found = found
  }
}

/** Texts of a value that came from outside, so that nobody has to make them again. */
export interface Parts {
  /** Its JSON, as it came. All of it can be stored. */
  json: string
  canonical?: string
}

const parts = new WeakMap<object, Parts>()

/** The texts of a value that was read in steps and stood in a field that is stored; undefined for any other. */
export function partsOf(value: unknown): Parts | undefined {
  return typeof value === 'object' && value !== null ? parts.get(value) : undefined
}

/** Fields whose values are stored as they came, near the top of a body. */
const storedFields = new Set(['input', 'output', 'meta'])
const deepestStored = 3

/** What can be stored, and the levels around it. */
const deepest = 200 + deepestStored
const valuesPerStep = 256

/** Text without any of this is read by JSON.parse, which is several times as fast. The escapes are those of letters in `__proto__`. */
const suspicious = /\d{16}|__proto__|\\u00(?:5f|70|72|6f|74)/i

/** The value of a JSON text. `name` begins the path of what is refused. */
export function parseExact(text: string, name: string): unknown {
  if (!suspicious.test(text)) return JSON.parse(text)
  const steps = parseSteps(text, name)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** The same in small steps, for text that is so long that something else must be done meanwhile. */
export function* parseSteps(text: string, name: string): Generator<undefined, unknown> {
  const reader = new Reader(text, name)
  for (let count = 1; ; count++) {
    const whole = reader.readValue()
    if (whole) return whole.value
    if (count % valuesPerStep === 0) yield
  }
}

interface Frame {
  holder: unknown[] | Record<string, unknown>
  /** The field that is read; null in a list. */
  key: string | null
  /** Where its text begins, if that is kept. */
  from: number
}

class Reader {
  readonly #text: string
  readonly #name: string
  readonly #open: Frame[] = []
  #at = 0

  constructor(text: string, name: string) {
    this.#text = text
    this.#name = name
  }

  /** Reads up to the end of the next value, or into the next list or object; answers the whole once that is read. */
  readValue(): { value: unknown } | undefined {
    const next = this.#peek()
    if (next !== '[' && next !== '{') return this.#place(this.#readScalar(next))
    const from = this.#isStored() ? this.#at : -1
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

  /** Puts a value where it belongs, and closes the lists and objects that end with it. */
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
      if (next !== endOf(frame)) throw new SyntaxError('A comma or an end is missing.')
      this.#open.pop()
      value = frame.holder
      if (frame.from >= 0) this.#keep(frame)
    }
  }

  #keep({ holder, from }: Frame): void {
    const text = this.#text.slice(from, this.#at)
    // without its line breaks: a text with controls costs far more to hand to Postgres
    parts.set(holder, { json: /[\t\r\n]/.test(text) ? JSON.stringify(holder) : text })
  }

  #isStored(): boolean {
    const above = this.#open.length <= deepestStored ? this.#open.at(-1)?.key : undefined
    return typeof above === 'string' && storedFields.has(above)
  }

  #finish(value: unknown): { value: unknown } {
    this.#peek()
    if (this.#at < this.#text.length) throw new SyntaxError('Something follows the value.')
    return { value }
  }

  #readKey(frame: Frame): void {
    if (this.#peek() !== '"') throw new SyntaxError('A name is missing.')
    const key = this.#readText()
    if (this.#peek() !== ':') throw new SyntaxError('A colon is missing.')
    this.#at += 1
    frame.key = key
    if (key === unsafeKey) throw this.#refusal(unsafeKeyProblem)
  }

  #readScalar(next: string): unknown {
    if (next === '"') return this.#readText()
    scalar.lastIndex = this.#at
    const found = scalar.exec(this.#text)?.[0]
    if (found === undefined) throw new SyntaxError('A value is missing.')
    if (isInexact(found))
      throw this.#refusal('is an integer that a JavaScript number cannot hold exactly; send it as a string')
    this.#at += found.length
    return found.length < 16 ? scalarOf(found) : JSON.parse(found)
  }

  #readText(): string {
    const from = this.#at
    let end = this.#text.indexOf('"', from + 1)
    while (end >= 0 && this.#isEscaped(end)) end = this.#text.indexOf('"', end + 1)
    if (end < 0) throw new SyntaxError('A text does not end.')
    this.#at = end + 1
    const inner = this.#text.slice(from + 1, end)
    if (!needsParsing.test(inner)) return inner
    const text: string = JSON.parse(`"${inner}"`)
    const problem = textProblem(text)
    if (problem) throw this.#refusal(problem)
    return text
  }

  #isEscaped(quote: number): boolean {
    let from = quote
    while (this.#text[from - 1] === '\\') from -= 1
    return (quote - from) % 2 === 1
  }

  /** The next character that is no white space; empty at the end. */
  #peek(): string {
    // most JSON has no blanks at all
    if (this.#text.charCodeAt(this.#at) > 32) return this.#text[this.#at] as string
    blank.lastIndex = this.#at
    if (blank.test(this.#text)) this.#at = blank.lastIndex
    return this.#text[this.#at] ?? ''
  }

  #refusal(problem: string): InexactJson {
    const path = this.#open.map(({ holder, key }) => (key === null ? `[${(holder as unknown[]).length}]` : `.${key}`))
    return new InexactJson({ path: `${this.#name}${path.join('')}`, problem })
  }
}

const blank = /[ \t\r\n]+/y
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON allows none of them inside a text
const needsParsing = /[\\\u0000-\u001f]/

/** JSON.parse has a price of its own for each call. */
function scalarOf(text: string): unknown {
  if (text === 'true') return true
  if (text === 'false') return false
  return text === 'null' ? null : Number(text)
}

function endOf({ key }: Frame): string {
  return key === null ? ']' : '}'
}

/** Whether a number is an integer that changes its value when JavaScript reads it. */
function isInexact(number: string): boolean {
  if (number.length < 16 || !/^-?\d+$/.test(number)) return false
  // beyond the largest number there is, which has 309 digits
  return number.length > 310 || !Number.isFinite(Number(number)) || BigInt(Number(number)) !== BigInt(number)
}
