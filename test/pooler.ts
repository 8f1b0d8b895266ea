import { once } from 'node:events'
import net from 'node:net'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { isEncryptionRequest, type Message, makeMessageReader } from '#holdfast/prove/protocol'
import { throughPort } from '#holdfast/prove/target'

interface PoolerOptions {
  most?: number
  /** Whether clients get the number of a real backend, so that nothing gives the pooler away when they connect. */
  isDisguised?: boolean
}

interface Backend {
  socket: net.Socket
  pid: number
  client: Client | undefined
}

interface Client {
  socket: net.Socket
  backend: Backend | undefined
  /** What waits for a backend. */
  unsent: Buffer[]
  /** How many responses are still to come before the backend can be free. */
  open: number
}

const madeUpPid = 1_000_000_007

/** Opens a transaction pooler in front of the server of that URL, until the test ends. Its URL leads to the same database. */
export async function makePooler(
  url: string,
  { most = 4, isDisguised = false }: PoolerOptions = {},
): Promise<{ url: string }> {
  const pooler = new TransactionPooler(url, most)
  onTestFinished(() => pooler.close())
  await pooler.listen(isDisguised)
  return { url: throughPort(url, pooler.port) }
}

/** Many clients share a few backends, each for the duration of one transaction. */
class TransactionPooler {
  readonly #url: string
  readonly #most: number
  readonly #server = net.createServer((socket) => this.#accept(socket))
  readonly #sockets = new Set<net.Socket>()
  readonly #idle: Backend[] = []
  readonly #queue: Client[] = []
  #backends = 0
  #announcedPid = madeUpPid

  constructor(url: string, most: number) {
    this.#url = url
    this.#most = most
  }

  async listen(isDisguised: boolean): Promise<void> {
    if (isDisguised) {
      const backend = await this.#openBackend()
      this.#announcedPid = backend.pid
      this.#idle.push(backend)
    }
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  #accept(socket: net.Socket): void {
    this.#sockets.add(socket)
    const client: Client = { socket, backend: undefined, unsent: [], open: 0 }
    const read = makeMessageReader('client')
    socket.on('error', () => {})
    socket.on('close', () => this.#forget(client))
    socket.on('data', (chunk: Buffer) => {
      for (const message of read(chunk)) this.#receive(client, message)
    })
  }

  #forget(client: Client): void {
    this.#sockets.delete(client.socket)
    const index = this.#queue.indexOf(client)
    if (index >= 0) this.#queue.splice(index, 1)
    // a backend that a client left in the middle of a transaction cannot be used again
    client.backend?.socket.destroy()
  }

  #receive(client: Client, { type, raw }: Message): void {
    if (type === '') client.socket.write(isEncryptionRequest(raw) ? 'N' : greeting(this.#announcedPid))
    else if (type === 'X') client.socket.end()
    else this.#send(client, type, raw)
  }

  #send(client: Client, type: string, raw: Buffer): void {
    if (type === 'Q' || type === 'S') client.open += 1
    if (client.backend) client.backend.socket.write(raw)
    // if something is unsent, it waits for a backend already
    else if (client.unsent.push(raw) === 1) this.#find(client)
  }

  #find(client: Client): void {
    const backend = this.#idle.pop()
    if (backend) this.#assign(client, backend)
    else if (this.#backends < this.#most)
      void this.#openBackend().then((fresh) =>
        client.socket.destroyed ? this.#free(fresh) : this.#assign(client, fresh),
      )
    else this.#queue.push(client)
  }

  async #openBackend(): Promise<Backend> {
    this.#backends += 1
    const client = new pg.Client(this.#url)
    await client.connect()
    const { processID: pid } = client as unknown as { processID: number }
    const { stream: socket } = (client as unknown as { connection: { stream: net.Socket } }).connection
    // the library has only connected; from here on the bytes are ours
    socket.removeAllListeners('data').removeAllListeners('end').removeAllListeners('close')
    const backend: Backend = { socket, pid, client: undefined }
    const read = makeMessageReader('server')
    socket.on('data', (chunk: Buffer) => {
      for (const message of read(chunk)) this.#respond(backend, message)
    })
    socket.on('error', () => {})
    this.#sockets.add(socket)
    return backend
  }

  #respond(backend: Backend, { type, raw }: Message): void {
    const { client } = backend
    if (!client) return // this is how notifications get lost
    client.socket.write(raw)
    if (type !== 'Z') return
    client.open -= 1
    const isInTransaction = raw.toString('latin1', 5, 6) !== 'I'
    if (client.open > 0 || isInTransaction) return
    client.backend = undefined
    this.#free(backend)
  }

  #free(backend: Backend): void {
    backend.client = undefined
    const next = this.#queue.shift()
    if (next) this.#assign(next, backend)
    else this.#idle.push(backend)
  }

  #assign(client: Client, backend: Backend): void {
    backend.client = client
    client.backend = backend
    for (const raw of client.unsent.splice(0)) backend.socket.write(raw)
  }
}

/** What a server sends when a client connects: authenticated, its parameters, the number of the backend, and ready for queries. */
function greeting(backend: number): Buffer {
  const message = (type: string, body: Buffer) => {
    const head = Buffer.alloc(5)
    head.write(type)
    head.writeInt32BE(body.length + 4, 1)
    return Buffer.concat([head, body])
  }
  const number = (value: number) => {
    const four = Buffer.alloc(4)
    four.writeInt32BE(value)
    return four
  }
  const status = (name: string, value: string) => message('S', Buffer.from(`${name}\0${value}\0`))
  return Buffer.concat([
    message('R', number(0)),
    status('client_encoding', 'UTF8'),
    status('server_version', '16.0'),
    status('standard_conforming_strings', 'on'),
    status('integer_datetimes', 'on'),
    status('DateStyle', 'ISO, MDY'),
    message('K', Buffer.concat([number(backend), number(1)])),
    message('Z', Buffer.from('I')),
  ])
}
