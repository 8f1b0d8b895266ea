import { expect, test, vi } from 'vitest'
import { Running } from './running.ts'

const service = (start = async () => {}) => ({ start, stop: async () => {} })

test('a service that was stopped is forgotten', async () => {
  const running = new Running()
  const [stopFirst, stopSecond] = [await running.begin(service()), await running.begin(service())]
  expect(running.size).toBe(2)
  await stopFirst()
  expect(running.size).toBe(1)
  await stopSecond()
  expect(running.size).toBe(0)
})

test('a service that could not start is forgotten', async () => {
  const running = new Running()
  await expect(running.begin(service(() => Promise.reject(new Error('no'))))).rejects.toThrow('no')
  expect(running.size).toBe(0)
})

test('stopping stops what is still starting, and nothing can begin after it', async () => {
  const running = new Running()
  const stop = vi.fn(async () => {})
  void running.begin({ start: () => new Promise<void>(() => {}), stop })
  await running.stop()
  expect(stop).toHaveBeenCalledOnce()
  await expect(running.begin(service())).rejects.toMatchObject({ code: 'not_running' })
})
