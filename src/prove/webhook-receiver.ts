import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
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
  /** How it was answered: only `taken` is a success, and only `refused` is final. */
  answer: 'taken' | 'refused' | 'failed'
}

/** The paths of the receiver, and the secrets that may sign the webhooks that go there. */
export const receiverPaths = {
  '/endpoint': [secretOf('endpoint'), secretOf('rotated')],
  '/job': [secretOf('job')],
  '/elsewhere': [secretOf('elsewhere')],
} as const satisfies Record<string, readonly string[]>

/** How the receiver answers. */
type Behavior = 'take' | 'error' | 'busy' | 'cut' | 'slow'
const failures: Behavior[] = ['error', 'busy', 'cut', 'slow']
const slowMs = cellSettings.webhookTimeoutMs + 300

/** Receives the webhooks of a cell, and fails in every way before it takes one. */
export class WebhookReceiver {
  readonly receipts: Receipt[] = []
  readonly #server: Server
  readonly #tries = new Map<string, number>()
  readonly #held = new Map<ServerResponse, { id: string; release: () => void }>()
  #isHolding = false

  constructor() {
    this.#server = createServer((request, response) => {
      response.on('error', () => {})
      this.#receive(request, response).catch(() => response.destroy())
    })
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  url(path: keyof typeof receiverPaths): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`
  }

  /** Answers no request until released. */
  hold(): void {
    this.#isHolding = true
  }

  /** The events whose senders wait for an answer at this moment. */
  held(): string[] {
    return [...this.#held.values()].map(({ id }) => id)
  }

  release(): void {
    this.#isHolding = false
    for (const { release } of [...this.#held.values()]) release()
  }

  async stop(): Promise<void> {
    this.release()
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await textOf(request)
    const path = request.url ?? ''
    const id = String(request.headers['webhook-id'])
    const isSigned = hasSignature(path, id, body, request)
    if (this.#isHolding) await this.#untilReleased(id, response)
    const behavior = isRefused(path, body) ? 'refuse' : this.#nextBehavior(path, id)
    const isTaken = behavior === 'take' || behavior === 'slow'
    const answer = isTaken ? 'taken' : behavior === 'refuse' ? 'refused' : 'failed'
    this.receipts.push({ path, id, body, isSigned, answer })
    await respond(response, behavior)
  }

  #untilReleased(id: string, response: ServerResponse): Promise<void> {
    return new Promise((resolve) => {
      const release = () => {
        this.#held.delete(response)
        resolve()
      }
      this.#held.set(response, { id, release })
      response.once('close', release)
    })
  }

  /** The first event fails in every way, one after the other; each later one fails in one way, or not at all. */
  #nextBehavior(path: string, id: string): Behavior {
    if (path === '/elsewhere') return 'take'
    const key = `${path} ${id}`
    const tries = this.#tries.get(key) ?? 0
    this.#tries.set(key, tries + 1)
    const number = [...this.#tries.keys()].indexOf(key)
    if (number === 0) return failures[tries] ?? 'take'
    return (tries === 0 && failures[number % (failures.length + 1)]) || 'take'
  }
}

async function respond(response: ServerResponse, behavior: Behavior | 'refuse'): Promise<void> {
  switch (behavior) {
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
  response.statusCode = { take: 200, slow: 200, refuse: 400, error: 500, busy: 429 }[behavior]
  response.end()
}

/** The failure of a doomed job is always refused, so that its event becomes a dead letter. */
function isRefused(path: string, body: string): boolean {
  const { type, data } = JSON.parse(body) as { type: string; data: { job: { kind: string } | null } }
  return path === '/endpoint' && type === announces('fail') && data.job?.kind === 'doomed'
}

function hasSignature(path: string, id: string, body: string, { headers }: IncomingMessage): boolean {
  const timestamp = Number(headers['webhook-timestamp'])
  const signatures = String(headers['webhook-signature']).split(' ')
  const secrets: readonly string[] = receiverPaths[path as keyof typeof receiverPaths] ?? []
  return secrets.some((secret) => signatures.includes(sign({ id, timestamp, body, secrets: [secret] })))
}

function secretOf(name: string): string {
  return `whsec_${Buffer.from(name.padEnd(32, '-')).toString('base64')}`
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
