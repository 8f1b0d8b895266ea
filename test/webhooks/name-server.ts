import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { isIPv4 } from 'node:net'
import { makeResolver, type NameResolver, type ResolverOptions } from '#holdfast/webhooks/resolver'

/** A local name server. */
export interface NameServer extends AsyncDisposable {
  /** Its address, as a setting. */
  address: string
  /** The names that it was asked for, one per question. */
  asked: string[]
}

/** A name server that knows these IPv4 addresses, and never answers for names under `silent.test`. */
export async function nameServer(known: Record<string, string>): Promise<NameServer> {
  const socket = createSocket('udp4')
  const asked: string[] = []
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    const { name, type, end } = questionIn(query)
    asked.push(name)
    if (name.endsWith('silent.test')) return
    socket.send(
      answerTo(query.subarray(0, end), type === 1 ? known[name] : undefined, name in known),
      from.port,
      from.address,
    )
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    async [Symbol.asyncDispose]() {
      socket.close()
      await once(socket, 'close')
    },
  }
}

/** A resolver that asks only this name server. */
export function resolverAt({ address }: NameServer, options: Partial<ResolverOptions> = {}): NameResolver {
  return makeResolver({ servers: [address], lookupMs: 10_000, mostPerTenant: 16, ...options })
}

function questionIn(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

/** Answers with the address, without one, or that the name does not exist. */
function answerTo(question: Buffer, address: string | undefined, isKnown: boolean): Buffer {
  const head = Buffer.from(question)
  head.writeUInt16BE(isKnown ? 0x8180 : 0x8183, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(address === undefined ? 0 : 1, 6)
  head.writeUInt32BE(0, 8)
  if (address === undefined || !isIPv4(address)) return head
  const record = Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)])
  return Buffer.concat([head, record])
}
