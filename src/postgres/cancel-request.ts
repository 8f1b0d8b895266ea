import net from 'node:net'
import tls from 'node:tls'
import type pg from 'pg'

/** What the driver knows about a connection but does not declare. */
interface Wire {
  readonly processID: number | null
  readonly secretKey: number | null
  readonly host: string
  readonly port: number
  readonly ssl: boolean | tls.ConnectionOptions | undefined
  readonly connection: { readonly stream: net.Socket }
}

const cancelCode = 80_877_102
const sslCode = 80_877_103

/**
 * Asks the server to cancel the statement that runs on this connection; the statement then fails with an error. Resolves when the server
 * has accepted the request, or after `withinMs`. Works through a pooler too, which identifies the connection by the same numbers.
 */
export function requestCancel(client: pg.ClientBase, withinMs: number): Promise<void> {
  const wire = client as unknown as Wire
  return new Promise((resolve) => {
    if (wire.processID === null || wire.secretKey === null) return resolve()
    const socket = connectBeside(wire)
    const timer = setTimeout(() => socket.destroy(), withinMs)
    // if the server can't be reached, the caller learns of it from the statement
    socket.on('error', () => {})
    socket.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
    const message = packet(cancelCode, wire.processID, wire.secretKey)
    socket.once('connect', () => (wire.ssl ? sendSecured(wire, socket, message) : socket.end(message)))
  })
}

/** A second connection to the same server: a host name may resolve to several. */
function connectBeside({ host, port, connection }: Wire): net.Socket {
  if (host.startsWith('/')) return net.connect(`${host}/.s.PGSQL.${port}`)
  const { remoteAddress = host, remotePort = port } = connection.stream
  return net.connect(remotePort, remoteAddress)
}

function sendSecured({ host, ssl }: Wire, socket: net.Socket, message: Buffer): void {
  socket.once('data', (answer) => {
    if (answer.toString('latin1', 0, 1) !== 'S') return socket.destroy()
    // the driver makes the key non-enumerable, so a copy of its options lacks it
    const options = typeof ssl === 'object' ? { ...ssl, ...(ssl.key && { key: ssl.key }) } : {}
    const secured = tls.connect({ ...options, socket, servername: net.isIP(host) ? '' : host })
    secured.on('error', () => socket.destroy())
    secured.once('secureConnect', () => secured.end(message))
  })
  socket.write(packet(sslCode))
}

function packet(...numbers: number[]): Buffer {
  const buffer = Buffer.alloc(4 + 4 * numbers.length)
  buffer.writeInt32BE(buffer.length, 0)
  for (const [index, number] of numbers.entries()) buffer.writeInt32BE(number, 4 + 4 * index)
  return buffer
}
