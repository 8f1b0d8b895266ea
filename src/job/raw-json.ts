/**
 * Checks JSON without parsing it into values. To store a value, it is enough to know that its text is well-formed and that nothing in it
 * would be lost. A million objects made only for this check would keep the garbage collector busy for longer than everything else takes.
 */

/** A value as the bytes of its JSON. They are outside the heap, where the garbage collector neither copies nor visits them. */
export class RawJson {
  readonly bytes: Buffer

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  get json(): string {
    return this.bytes.toString('utf8')
  }
}

const deepest = 200
const charactersPerStep = 8_192
/** Longer numbers may not be exact. */
const longestNumber = 15

const [quote, comma, colon, backslash] = [34, 44, 58, 92]
const [zero, one, nine, dot, exponent] = [48, 49, 57, 46, 101]
const [openList, closeList, openObject, closeObject] = [91, 93, 123, 125]

/**
 * Scans the array or object at `from`, in small steps. Returns where it ends, or -1 if it is malformed or contains anything unusual, such as
 * numeric escapes, long numbers or `__proto__`: parsing it shows what that is.
 */
export function* scanSteps(text: string, from: number): Generator<undefined, number> {
  const scanner = new Scanner(text, from)
  for (;;) {
    const isOpen = scanner.scan(charactersPerStep)
    if (!isOpen) return scanner.end
    yield
  }
}

class Scanner {
  readonly #text: string
  /** The closing character of each open array and object. */
  readonly #open: number[] = []
  #at: number

  constructor(text: string, from: number) {
    this.#text = text
    this.#at = from
  }

  /** Where the value ends; -1 if the scan gave up. */
  get end(): number {
    return this.#at
  }

  /** Scans about this many more characters. Returns whether there is more. */
  scan(length: number): boolean {
    const until = this.#at + length
    while (this.#at < until) {
      if (!this.#readValue()) return this.#giveUp()
      if (this.#open.length === 0) return false
    }
    return true
  }

  #giveUp(): false {
    this.#at = -1
    return false
  }

  /** Reads a value and what follows it, or into the array or object that begins here. */
  #readValue(): boolean {
    const next = this.#peek()
    if (next !== openList && next !== openObject) return this.#readScalar(next) && this.#readEnds()
    if (this.#open.length >= deepest) return false
    const close = next === openList ? closeList : closeObject
    this.#open.push(close)
    this.#at += 1
    if (this.#peek() === close) return this.#readEnds()
    return close === closeList || this.#readKey()
  }

  /** After a value: the ends of the arrays and objects around it, or the comma before the next value. */
  #readEnds(): boolean {
    for (;;) {
      const close = this.#open.at(-1)
      if (close === undefined) return true
      const next = this.#peek()
      this.#at += 1
      if (next === comma) return close === closeList || this.#readKey()
      if (next !== close) return false
      this.#open.pop()
    }
  }

  #readKey(): boolean {
    if (this.#peek() !== quote) return false
    const from = this.#at + 1
    if (!this.#readText()) return false
    if (this.#at - from === 10 && this.#text.startsWith('__proto__', from)) return false
    if (this.#peek() !== colon) return false
    this.#at += 1
    return true
  }

  #readScalar(next: number): boolean {
    if (next === quote) return this.#readText()
    if (next >= one && next <= nine && this.#readInteger()) return true
    scalar.lastIndex = this.#at
    if (!scalar.test(this.#text)) return false
    const length = scalar.lastIndex - this.#at
    this.#at = scalar.lastIndex
    return length <= longestNumber
  }

  /** Reads a positive integer without a regular expression, which would cost more than the rest of the scan. Returns false if it is anything else. */
  #readInteger(): boolean {
    let at = this.#at
    let next: number
    do next = this.#text.charCodeAt(++at)
    while (next >= zero && next <= nine)
    if (next === dot || (next | 32) === exponent || at - this.#at > longestNumber) return false
    this.#at = at
    return true
  }

  #readText(): boolean {
    for (let at = this.#at + 1; at < this.#text.length; at++) {
      const code = this.#text.charCodeAt(at)
      if (code === quote) {
        this.#at = at + 1
        return true
      }
      if (code < 32) return false
      if (code === backslash && !plainEscapes.has(this.#text.charCodeAt(++at))) return false
    }
    return false
  }

  /** The next character that is not white space. */
  #peek(): number {
    for (;;) {
      const next = this.#text.charCodeAt(this.#at)
      if (next > space || !blanks.has(next)) return next
      this.#at += 1
    }
  }
}

const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const space = 32
const blanks = new Set([...' \t\r\n'].map((one) => one.charCodeAt(0)))
const plainEscapes = new Set([...'"\\/bfnrt'].map((one) => one.charCodeAt(0)))
