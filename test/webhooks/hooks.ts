import { defineJob, type Holdfast, PermanentError } from 'holdfast'
import { Webhook } from 'standardwebhooks'
import { onTestFinished } from 'vitest'
import { until } from '../until.ts'
import { type Received, receiver } from './receiver.ts'

/** Settings that allow receivers on this machine. */
export const near = { webhookAllow: ['127.0.0.1/32'], webhookTimeoutMs: 5_000 } as const

/** Returns its input. */
export const echo = defineJob('echo', { run: ({ input }) => input as unknown })
/** Fails for good. */
export const broken = defineJob('broken', {
  retries: 0,
  run: () => {
    throw new PermanentError('It broke.')
  },
})
/** Two stages, each with a result. */
export const staged = defineJob('staged', {
  stages: [
    { name: 'draft', run: () => ({ text: 'half' }) },
    { name: 'final', run: () => ({ text: 'whole' }) },
  ],
})

/** The parts of a webhook's body that tests read. */
export interface Told {
  id: string
  type: string
  subject: string | null
  traceparent?: string
  data: {
    tenant: string
    job: { id: string; state: string; stage: { number: number; name: string }; meta: unknown } | null
    result: unknown
    resultOmitted?: { bytes: number; reason: string; link: string }
    error: { code: string; message: string } | null
    details: Record<string, unknown> | null
  }
}

/** Responses, one after the other; the last one is repeated. */
export type Answers = (number | { status: number; headers?: Record<string, string>; body?: string })[]

/** A receiver that answers as given, until the test ends. */
export async function hook(answers: Answers = [200]) {
  let next = 0
  const server = await receiver((response) => {
    const answer = answers[Math.min(next++, answers.length - 1)] ?? 200
    const { status, headers = {}, body = '' } = typeof answer === 'number' ? { status: answer } : answer
    response.writeHead(status, headers).end(body)
  })
  onTestFinished(() => server[Symbol.asyncDispose]())
  return {
    ...server,
    told: () => server.received.map(bodyOf),
    /** Waits until it has received that many. */
    got: (count: number) =>
      until(
        () => server.received.length >= count && server.received,
        `${count} webhooks (got ${server.received.length})`,
      ),
  }
}

/** The body of a webhook. */
export function bodyOf(received: Received): Told {
  return JSON.parse(received.body)
}

/** Verifies a signature as a receiver does. Throws if it is wrong. */
export function verify(secret: string, received: Received | undefined): void {
  new Webhook(secret).verify(received?.body ?? '', received?.headers as Record<string, string>)
}

/** Waits until there are that many deliveries in a state, and returns them. */
export function settled(hf: Holdfast, state: 'pending' | 'delivered' | 'dead', count = 1) {
  return until(async () => {
    const all = await hf.webhooks.deliveries({ state, limit: 1000 })
    return all.length >= count && all
  }, `${count} deliveries that are ${state}`)
}
