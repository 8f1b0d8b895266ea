import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'

/** A connection that sends bytes as they are, and reads only when it is asked to. */
export interface RawConnection {
  readonly socket: Socket
  /** The next whole answer, with its head and body as text; null if the connection ends before. */
  answer(): Promise<string | null>
  /** Resolves when the connection is closed, by either side. */
  readonly over: Promise<void>
}

/** Opens a connection, from another address of this machine if one is given. */
export async function open(port: number, localAddress = '127.0.0.1'): Promise<RawConnection> {
  const socket = createConnection({ port, host: '127.0.0.1', localAddress })
  let isOver = false
  socket.on('error', () => {}) // being cut off is what these tests are about
  const over = new Promise<void>((resolve) => {
    socket.once('close', () => {
      isOver = true
      resolve()
    })
  })
  await Promise.race([once(socket, 'connect'), over])
  let had = Buffer.alloc(0)
  let wake = () => {}
  for (const sign of ['readable', 'end', 'close']) socket.on(sign, () => wake())
  return {
    socket,
    over,
    async answer() {
      for (;;) {
        const length = lengthOf(had)
        if (length !== null && had.length >= length) {
          const whole = had.subarray(0, length).toString('utf8')
          had = had.subarray(length)
          return whole
        }
        const part = socket.read() as Buffer | null
        if (part) had = Buffer.concat([had, part])
        else if (isOver || socket.readableEnded) return null
        else
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      }
    },
  }
}

/** How long the first answer is; null while its head is not complete. Every answer that is read here tells its length. */
function lengthOf(bytes: Buffer): number | null {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return null
  const head = bytes.subarray(0, end).toString('latin1')
  if (/^HTTP\/1\.1 1\d\d/.test(head)) return end + 4
  return end + 4 + Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
}

/** A request without a body. */
export function get(path: string, ...headers: string[]): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`
}

/** The status of an answer. */
export function statusOf(answer: string | null): number {
  return Number(/^HTTP\/1\.1 (\d+)/.exec(answer ?? '')?.[1])
}
