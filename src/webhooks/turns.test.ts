import { expect, test } from 'vitest'
import { Turns } from './turns.ts'

const never = new AbortController().signal

/** Whether a promise has settled once everything that is due now was done. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const later = Symbol('later')
  return (await Promise.race([promise, new Promise((resolve) => setImmediate(resolve, later))])) !== later
}

test('what is more than a tenant may do waits for its own, in order, and never for another', async () => {
  const turns = new Turns(1)
  const end = await turns.take('acme', never)
  const [second, third] = [turns.take('acme', never), turns.take('acme', never)]
  expect(await isSettled(second)).toBe(false)
  expect(await isSettled(turns.take('other', never))).toBe(true)
  end()
  const endSecond = await second
  expect(await isSettled(third)).toBe(false)
  endSecond()
  await third
})

test('who is told to stop waits no longer, and its turn goes to the next', async () => {
  const turns = new Turns(1)
  const end = await turns.take('acme', never)
  const stop = new AbortController()
  const [stopped, next] = [turns.take('acme', stop.signal), turns.take('acme', never)]
  stop.abort(new Error('late'))
  await expect(stopped).rejects.toThrow('late')
  await expect(turns.take('acme', stop.signal)).rejects.toThrow('late')
  end()
  await next
})
