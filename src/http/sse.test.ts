import { expect, test, vi } from 'vitest'
import type { LogEvent } from '../events/event.ts'
import { stream } from './sse.ts'

async function* many(): AsyncGenerator<LogEvent> {
  for (;;) yield { type: 'job.submitted' } as LogEvent
}

test('a client that takes nothing is let go, and one that reads on is not', async () => {
  const onEnd = vi.fn()
  const given = { from: '0', show: async () => ({ id: '1', text: 'x'.repeat(30_000) }), isWelcome: async () => true }
  const { body } = stream({ ...given, events: many(), onEnd, stalledMs: 50 })
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  for (let parts = 0; parts < 20; parts++) {
    expect((await reader.read()).done).toBe(false)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  expect(onEnd).not.toHaveBeenCalled()
  await vi.waitFor(() => expect(onEnd).toHaveBeenCalled())
  await expect(reader.closed).rejects.toThrow('The client stopped reading.')
})
