import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import pg from 'pg'

/** Where a Postgres server is, and how its connections are encrypted, if they are. */
export interface Target {
  host: string
  port: number
  tls: ConnectionOptions | undefined
}

const tlsRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const timeoutMs = 10_000

/** The target that a URL names, read as `pg` reads it. */
export function targetOf(url: string): Target {
  const { host, port, ssl } = new pg.Client({ connectionString: url })
  return { host, port, tls: ssl ? (typeof ssl === 'object' ? ssl : {}) : undefined }
}

/** Connects to the server. Encryption ends at the proxy, which could see no statement otherwise. */
export async function dial({ host, port, tls }: Target): Promise<Socket> {
  const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect({ host, port, noDelay: true })
  const late = setTimeout(
    () => socket.destroy(new Error(`${host}:${port} did not answer within ${timeoutMs} ms.`)),
    timeoutMs,
  )
  try {
    await once(socket, 'connect')
    if (!tls) return socket
    socket.write(tlsRequest)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    if (String(answer) !== 'S') throw new Error(`${host}:${port} offers no encryption, but its URL asks for it.`)
    const secured = connectTls({ ...tls, socket, host })
    await once(secured, 'secureConnect')
    return secured
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(late)
  }
}

/** The same database through a port of this machine. */
export function throughPort(url: string, port: number): string {
  const changed = new URL(url)
  changed.hostname = '127.0.0.1'
  changed.port = String(port)
  changed.search = '' // how to encrypt the way to the server is the proxy's business
  return changed.href
}
