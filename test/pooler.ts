import { once } from 'node:events'
import net from 'node:net'
import pg from 'pg'
import { onTestFinished } from 'vitest'

/** A transaction pooler: many clients over few backends, each for the length of one transaction. */
export interface Pooler {
  /** The same database, by way of the pooler. */
  url: string
  /** How many backends it holds. */
  backends(): number
}

interface Backend {
  socket: net.Socket
  client: Client | undefined
}

interface Client {
  socket: net.Socket
  backend: Backend | undefined
  /** What waits for a backend. */
  unsent: Buffer[]
  /** Answers that are still to come before the backend can be free. */
  open: number
}

interface PoolerOptions {
  most?: number
  /** Whether clients are told the number of a real backend, so that nothing gives the pooler away at the start. */
  isDisguised?: boolean
}

/** Makes a pooler in front of the server of that URL; it goes with the test. */
export async function makePooler(url: string, { most = 4, isDisguised = false }: PoolerOptions = {}): Promise<Pooler> {
  const idle: Backend[] = []
  const all = new Set<Backend>()
  const sockets = new Set<net.Socket>()
  const queue: Client[] = []
  const names: number[] = []
  let made = 0

  async function makeBackend(): Promise<Backend> {
    made += 1
    const client = new pg.Client(url)
    await client.connect()
    names.push((client as unknown as { processID: number }).processID)
    const { stream } = (client as unknown as { connection: { stream: net.Socket } }).connection
    // from here on the bytes are ours: the library has done nothing but open the door
    stream.removeAllListeners('data').removeAllListeners('end').removeAllListeners('close')
    const backend: Backend = { socket: stream, client: undefined }
    const framesIn = frameReader(true)
    stream.on('data', (data: Buffer) => {
      for (const frame of framesIn(data)) hear(backend, frame)
    })
    stream.on('error', () => {})
    sockets.add(stream)
    all.add(backend)
    return backend
  }

  function hear(backend: Backend, frame: Buffer): void {
    const { client } = backend
    if (!client) return // nobody to tell: this is how notifications are lost
    client.socket.write(frame)
    if (frame[0] !== 0x5a) return
    client.open -= 1
    if (client.open > 0 || frame[5] !== 0x49) return
    client.backend = undefined
    free(backend)
  }

  function free(backend: Backend): void {
    backend.client = undefined
    const next = queue.shift()
    if (next) assign(next, backend)
    else idle.push(backend)
  }

  function assign(client: Client, backend: Backend): void {
    backend.client = client
    client.backend = backend
    for (const data of client.unsent.splice(0)) backend.socket.write(data)
  }

  function send(client: Client, frame: Buffer): void {
    if (frame[0] === 0x51 || frame[0] === 0x53) client.open += 1
    if (client.backend) client.backend.socket.write(frame)
    // behind a first one it waits already
    else if (client.unsent.push(frame) === 1) find(client)
  }

  function find(client: Client): void {
    const backend = idle.pop()
    if (backend) assign(client, backend)
    else if (made < most)
      void makeBackend().then((fresh) => (client.socket.destroyed ? free(fresh) : assign(client, fresh)))
    else queue.push(client)
  }

  const server = net.createServer((socket) => {
    sockets.add(socket)
    const client: Client = { socket, backend: undefined, unsent: [], open: 0 }
    const framesIn = frameReader(false)
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      const place = queue.indexOf(client)
      if (place >= 0) queue.splice(place, 1)
      // what a client left in the middle of a transaction cannot be used again
      client.backend?.socket.destroy()
    })
    socket.on('data', (data: Buffer) => {
      for (const frame of framesIn(data)) {
        if (frame.length === 8 && frame.readInt32BE(4) === 80877103) socket.write('N')
        else if (frame[0] === 0) socket.write(greeting(isDisguised ? (names[0] as number) : 1_000_000_007))
        else if (frame[0] === 0x58) socket.end()
        else send(client, frame)
      }
    })
  })
  if (isDisguised) idle.push(await makeBackend())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const own = new URL(url)
  own.host = `127.0.0.1:${(server.address() as net.AddressInfo).port}`
  return { url: own.href, backends: () => all.size }
}

/** Cuts a stream into messages. The first ones of a client have no type: they begin with their length. */
function frameReader(isServer: boolean): (data: Buffer) => Buffer[] {
  let rest = Buffer.alloc(0)
  let isStarted = isServer
  return (data) => {
    rest = Buffer.concat([rest, data])
    const frames: Buffer[] = []
    for (;;) {
      const head = isStarted ? 1 : 0
      if (rest.length < head + 4) return frames
      const length = head + rest.readInt32BE(head)
      if (rest.length < length) return frames
      const frame = rest.subarray(0, length)
      // a wish for encryption comes before the start itself
      if (!isStarted && !(length === 8 && frame.readInt32BE(4) === 80877103)) isStarted = true
      frames.push(frame)
      rest = rest.subarray(length)
    }
  }
}

/** What a client is told at its start: it is let in, what the server is like, its backend's number, and that it may ask. */
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
