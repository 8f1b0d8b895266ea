import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { announces } from '../job/machine.ts'
import { pause } from '../service/service.ts'
import { sign } from '../webhooks/sign.ts'
import { cellSettings } from './settings.ts'

/** A webhook that was received. */
export interface Receipt {
  path: string
  /** The id of the event. */
  id: string
  body: string
  isSigned: boolean
  /** What was said: only `taken` is a yes, and only `refused` means never. */
  answer: 'taken' | 'refused' | 'failed'
}

/** Where the webhooks of a cell go, and the secrets that may sign there. */
export const receiverPaths = {
  '/endpoint': [secretOf('endpoint'), secretOf('rotated')],
  '/job': [secretOf('job')],
  '/elsewhere': [secretOf('elsewhere')],
} as const satisfies Record<string, readonly string[]>

/** Receives webhooks, and fails in every way before it takes one. */
export interface Receiver {
  url(path: keyof typeof receiverPaths): string
  readonly receipts: readonly Receipt[]
  /** From here on nobody gets an answer, until they are let go. */
  hold(): void
  /** The events whose senders wait for an answer at this moment. */
  held(): string[]
  letGo(): void
  close(): Promise<void>
}

type Manner = 'take' | 'error' | 'busy' | 'cut' | 'slow'
const failing: Manner[] = ['error', 'busy', 'cut', 'slow']
const slowMs = cellSettings.webhookTimeoutMs + 300

/** Opens a receiver on this machine. */
export async function openReceiver(): Promise<Receiver> {
  const receipts: Receipt[] = []
  const asked = new Map<string, number>()
  const waiting = new Map<ServerResponse, { id: string; go: () => void }>()
  let isHolding = false

  const server = createServer((request, response) => {
    response.on('error', () => {})
    receive(request, response).catch(() => response.destroy())
  })

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await textOf(request)
    const path = request.url ?? ''
    const id = String(request.headers['webhook-id'])
    const isSigned = hasSignature(path, id, body, request)
    if (isHolding) await untilLetGo(id, response)
    const manner = isRefused(path, body) ? 'refuse' : nextManner(path, id)
    const answer = manner === 'take' || manner === 'slow' ? 'taken' : manner === 'refuse' ? 'refused' : 'failed'
    receipts.push({ path, id, body, isSigned, answer })
    await reply(response, manner)
  }

  function untilLetGo(id: string, response: ServerResponse): Promise<void> {
    return new Promise((resolve) => {
      const go = () => {
        waiting.delete(response)
        resolve()
      }
      waiting.set(response, { id, go })
      response.once('close', go)
    })
  }

  /** The first event fails in every way, one after the other; each later one in one way, or in none. */
  function nextManner(path: string, id: string): Manner {
    if (path === '/elsewhere') return 'take'
    const name = `${path} ${id}`
    const tries = asked.get(name) ?? 0
    if (tries === 0) asked.set(name, 0)
    asked.set(name, tries + 1)
    const number = [...asked.keys()].indexOf(name)
    if (number === 0) return failing[tries] ?? 'take'
    return (tries === 0 && failing[number % (failing.length + 1)]) || 'take'
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const letGo = () => {
    isHolding = false
    for (const { go } of [...waiting.values()]) go()
  }
  return {
    url: (path) => `http://127.0.0.1:${port}${path}`,
    receipts,
    hold() {
      isHolding = true
    },
    held: () => [...waiting.values()].map(({ id }) => id),
    letGo,
    async close() {
      letGo()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function reply(response: ServerResponse, manner: Manner | 'refuse'): Promise<void> {
  switch (manner) {
    case 'cut':
      response.socket?.write('HTTP/1.1 200 OK\r\ncontent-len')
      response.socket?.destroy()
      return
    case 'slow':
      await pause(slowMs)
      break
    case 'busy':
      response.setHeader('retry-after', '0')
      break
  }
  response.statusCode = { take: 200, slow: 200, refuse: 400, error: 500, busy: 429 }[manner]
  response.end()
}

/** Who fails for good is never taken: its event becomes a dead letter. */
function isRefused(path: string, body: string): boolean {
  const { type, data } = JSON.parse(body) as { type: string; data: { job: { kind: string } | null } }
  return path === '/endpoint' && type === announces('fail') && data.job?.kind === 'doomed'
}

function hasSignature(path: string, id: string, body: string, { headers }: IncomingMessage): boolean {
  const timestamp = Number(headers['webhook-timestamp'])
  const given = String(headers['webhook-signature']).split(' ')
  const secrets: readonly string[] = receiverPaths[path as keyof typeof receiverPaths] ?? []
  return secrets.some((secret) => given.includes(sign({ id, timestamp, body, secrets: [secret] })))
}

function secretOf(name: string): string {
  return `whsec_${Buffer.from(name.padEnd(32, '-')).toString('base64')}`
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
