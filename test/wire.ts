import net from 'node:net'
import { onTestFinished } from 'vitest'

/** When a wire is cut: before the server sees a statement, or after it has answered but before the answer is heard. */
type Moment = 'before' | 'after'

/** A wire to the database that the test can listen to and cut. */
export interface Wire {
  /** The same database, by way of this wire. */
  url: string
  /** The names of the statements that went over it, in order. */
  readonly statements: string[]
  /** Cuts the connection that next carries a statement of this name, once; resolves when it is done. */
  cut(moment: Moment, statement: string): Promise<void>
  /** Lets nothing pass in either direction, on old connections and new ones, without closing any. */
  stall(): void
  /** Closes all connections, and at once whichever is made anew. */
  refuse(): void
  /** Closes all connections and lets whoever comes next through again. */
  reconnect(): void
}

interface Trap {
  moment: Moment
  statement: string
  sprung: () => void
}

/** Makes a wire to the server of that URL; it goes with the test. */
export async function makeWire(url: string): Promise<Wire> {
  const target = new URL(url)
  const statements: string[] = []
  const sockets = new Set<net.Socket>()
  let traps: Trap[] = []
  let isStalled = false
  let isRefused = false

  function springs(moment: Moment, names: string[]): Trap | undefined {
    const trap = traps.find((one) => one.moment === moment && names.includes(one.statement))
    traps = traps.filter((one) => one !== trap)
    return trap
  }

  const server = net.createServer((client) => {
    if (isRefused) return void client.destroy()
    const upstream = net.connect(Number(target.port || 5432), target.hostname)
    const namesIn = statementReader()
    let late: Trap | undefined
    const close = () => {
      for (const socket of [client, upstream]) {
        socket.destroy()
        sockets.delete(socket)
      }
    }
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', close).on('close', close)
    }
    client.on('data', (data) => {
      if (isStalled) return
      const names = namesIn(data)
      statements.push(...names)
      const early = springs('before', names)
      if (early) {
        close()
        return early.sprung()
      }
      late ??= springs('after', names)
      upstream.write(data)
    })
    upstream.on('data', (data) => {
      if (isStalled) return
      if (!late) return client.write(data)
      // the answer comes in one piece once the server has committed: the statement was carried out, and nobody hears of it
      close()
      late.sprung()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const drop = () => {
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  onTestFinished(() => {
    drop()
    server.close()
  })

  const own = new URL(url)
  own.host = `127.0.0.1:${(server.address() as net.AddressInfo).port}`
  return {
    url: own.href,
    statements,
    cut: (moment, statement) => new Promise((sprung) => traps.push({ moment, statement, sprung })),
    stall: () => {
      isStalled = true
    },
    refuse() {
      isRefused = true
      drop()
    },
    reconnect() {
      isStalled = false
      isRefused = false
      drop()
    },
  }
}

/** Reads the names of the statements that a client runs: of a named one as it is bound, else of the comment in its text. */
function statementReader(): (data: Buffer) => string[] {
  let rest = Buffer.alloc(0)
  let isStarted = false
  let unnamed = ''
  return (data) => {
    rest = Buffer.concat([rest, data])
    const names: string[] = []
    for (;;) {
      const head = isStarted ? 1 : 0
      if (rest.length < head + 4) return names
      const length = head + rest.readInt32BE(head)
      if (rest.length < length) return names
      const type = isStarted ? String.fromCharCode(rest[0] as number) : 'startup'
      const [first = '', second = ''] = rest
        .subarray(head + 4, length)
        .toString('latin1')
        .split('\0', 2)
      if (type === 'P' && first === '') unnamed = commentIn(second)
      if (type === 'B') names.push(second || unnamed)
      if (type === 'Q') names.push(commentIn(first))
      isStarted = true
      rest = rest.subarray(length)
    }
  }
}

function commentIn(text: string): string {
  return /^\/\* (\S+) \*\//.exec(text)?.[1] ?? text.split(' ', 1)[0] ?? ''
}
