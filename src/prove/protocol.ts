/** A message of the Postgres protocol, version 3, as it was sent. The first messages of a client have no type. */
export interface Message {
  type: string
  raw: Buffer
}

/** Splits a stream of bytes into messages, however the network has split it. */
export type MessageReader = (chunk: Buffer) => Message[]

/** The codes of messages without a type that ask for something other than a session. */
const requestCodes = { tls: 80_877_103, gss: 80_877_104 }

/** Reads one side of a connection. A client begins with messages that have no type byte. */
export function makeMessageReader(side: 'client' | 'server'): MessageReader {
  let pending: Buffer[] = []
  let size = 0
  let isTyped = side === 'server'

  function nextLength(): number | undefined {
    const header = isTyped ? 5 : 4
    if (size < header) return undefined
    if ((pending[0] as Buffer).length < header) pending = [Buffer.concat(pending)]
    return (pending[0] as Buffer).readInt32BE(header - 4) + header - 4
  }

  function take(length: number): Message {
    // joined once per message, however many chunks it came in
    const all = pending.length === 1 ? (pending[0] as Buffer) : Buffer.concat(pending)
    const raw = all.subarray(0, length)
    const rest = all.subarray(length)
    pending = rest.length > 0 ? [rest] : []
    size = rest.length
    const type = isTyped ? String.fromCharCode(raw[0] as number) : ''
    if (!isTyped && !isEncryptionRequest(raw)) isTyped = true
    return { type, raw }
  }

  return (chunk) => {
    if (chunk.length > 0) pending.push(chunk)
    size += chunk.length
    const messages: Message[] = []
    for (let length = nextLength(); length !== undefined && size >= length; length = nextLength())
      messages.push(take(length))
    return messages
  }
}

/** Whether a message without a type asks to encrypt the connection. A proxy answers that itself. */
export function isEncryptionRequest(raw: Buffer): boolean {
  return raw.length === 8 && Object.values(requestCodes).includes(raw.readInt32BE(4))
}

/** A statement that a client sends. */
export interface SentStatement {
  name: string
  /** Whether it notifies, or listens for notifications. */
  isAboutWaking: boolean
  isListen: boolean
  isWrite: boolean
}

/** Finds the statement that a message of a client runs, if any, by its prepared name or its leading comment. */
export function makeStatementFinder(): (message: Message) => SentStatement | undefined {
  // a Bind has only the prepared name, so the text of its Parse is remembered
  const prepared = new Map<string, SentStatement>()
  return ({ type, raw }) => {
    if (type === 'Q') return statementOf(textAt(raw, 5).text)
    if (type === 'P') {
      const { text: name, end } = textAt(raw, 5)
      const statement = statementOf(textAt(raw, end).text)
      prepared.set(name, statement)
      return statement
    }
    if (type !== 'B') return undefined
    const { text: name } = textAt(raw, textAt(raw, 5).end)
    return prepared.get(name) ?? { name, isAboutWaking: false, isListen: false, isWrite: false }
  }
}

function textAt(raw: Buffer, start: number): { text: string; end: number } {
  const end = raw.indexOf(0, start)
  return { text: raw.toString('utf8', start, end), end: end + 1 }
}

function statementOf(text: string): SentStatement {
  const isListen = /^\s*(\/\*.*?\*\/\s*)?listen\s/i.test(text)
  const isWrite = /\b(insert\s+into|update|delete\s+from|commit)\s|holdfast\.(send|await)_signal\(/i.test(`${text} `)
  return { name: nameIn(text), isAboutWaking: isListen || /pg_notify\s*\(/.test(text), isListen, isWrite }
}

/** The name in the leading comment; without one, the first two words. */
export function nameIn(text: string): string {
  const named = /^\s*\/\*\s*([\w.-]+)\s*\*\//.exec(text)
  if (named) return named[1] as string
  const bare = text.replace(/^(\s+|--[^\n]*\n|\/\*.*?\*\/)+/s, '').toLowerCase()
  return (
    bare
      .match(/[a-z_]+/g)
      ?.slice(0, 2)
      .join(' ') ?? 'empty'
  )
}
