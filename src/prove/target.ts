import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import pg from 'pg'

/** The address of a Postgres server, and how its connections are encrypted, if they are. */
export interface Target {
  host: string
  port: number
  tls: ConnectionOptions | undefined
}

const tlsRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const timeoutMs = 10_000

/** The target of a URL, parsed the way `pg` parses it. */
export function targetOf(url: string): Target {
  const { host, port, ssl } = new pg.Client({ connectionString: url })
  return { host, port, tls: ssl ? (typeof ssl === 'object' ? ssl : {}) : undefined }
}

/** Connects to the server. Encryption ends at the proxy, which could not read statements otherwise. */
export async function connectTo({ host, port, tls }: Target): Promise<Socket> {
  const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect({ host, port, noDelay: true })
  const timer = setTimeout(
    () => socket.destroy(new Error(`${host}:${port} did not answer within ${timeoutMs} ms.`)),
    timeoutMs,
  )
  try {
    await once(socket, 'connect')
    return tls ? await encrypt(socket, host, tls) : socket
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

async function encrypt(socket: Socket, host: string, tls: ConnectionOptions): Promise<Socket> {
  socket.write(tlsRequest)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  if (String(answer) !== 'S') throw new Error(`${host} does not support TLS, but its URL requires it.`)
  const encrypted = connectTls({ ...tls, socket, host })
  await once(encrypted, 'secureConnect')
  return encrypted
}

/** The same database through a local port. */
export function throughPort(url: string, port: number): string {
  const changed = new URL(url)
  changed.hostname = '127.0.0.1'
  changed.port = String(port)
  changed.search = '' // the proxy encrypts the connection to the server, if the URL asks for it
  return changed.href
}
